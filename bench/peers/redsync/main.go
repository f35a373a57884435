// SPDX-License-Identifier: Apache-2.0

// redsync as a peer of the bench; the lines it is told by are described in bench/peer.c.
//
//	worker REDIS-URL
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime/debug"
	"sort"
	"strings"
	"sync"
	"syscall"
	"unsafe"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

// By default a waiter gives up after 32 tries; here all wait until they have it.
const tries = 1 << 30

type caller struct {
	mutex   *redsync.Mutex
	alone   bool
	samples []int64
	longest int64
	all     int
}

// CLOCK_MONOTONIC in ns; Go's own clock does not tell its zero.
func now() int64 {
	var t syscall.Timespec
	syscall.Syscall(syscall.SYS_CLOCK_GETTIME, 1, uintptr(unsafe.Pointer(&t)), 0)
	return t.Nano()
}

func must(err error) {
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
}

func (c *caller) run(from, until int64) {
	for start := now(); start < until; {
		must(c.mutex.Lock())
		acquired := now()
		_, err := c.mutex.Unlock()
		must(err)
		end := now()
		took := acquired - start
		if c.alone {
			took = end - start
		}
		if end >= from && start < until {
			c.longest = max(c.longest, took)
		}
		if end >= from && end < until {
			c.samples = append(c.samples, took)
		}
		start = end
		c.all++
	}
}

func connect(url string) *redis.Client {
	options, err := redis.ParseURL(url)
	must(err)
	return redis.NewClient(options)
}

func newMutex(client *redis.Client, name string) *redsync.Mutex {
	return redsync.New(goredis.NewPool(client)).NewMutex(name, redsync.WithTries(tries))
}

func usage() syscall.Rusage {
	var u syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return u
}

func run(url string, shared *redis.Client, mode string, threads int, warmMs, runMs int64) string {
	callers := make([]caller, threads)
	for i := range callers {
		client, name := shared, "redsync:crowd"
		if mode == "clients" {
			client = connect(url)
			defer client.Close()
		}
		if mode == "distinct" {
			name = fmt.Sprintf("redsync:%d", i)
		}
		callers[i] = caller{mutex: newMutex(client, name), alone: mode == "distinct"}
	}
	before := usage()
	from := now() + warmMs*1000000
	until := from + runMs*1000000
	var all sync.WaitGroup
	for i := range callers {
		all.Add(1)
		go func() {
			callers[i].run(from, until)
			all.Done()
		}()
	}
	all.Wait()
	return summary(callers, before, usage())
}

func summary(callers []caller, before, after syscall.Rusage) string {
	var samples []int64
	var longest int64
	made := 0
	for _, c := range callers {
		samples = append(samples, c.samples...)
		longest = max(longest, c.longest)
		made += c.all
	}
	sort.Slice(samples, func(a, b int) bool { return samples[a] < samples[b] })
	count, p50, p99 := len(samples), longest, longest
	if count > 0 {
		p50, p99 = samples[count/2], samples[count-1-count/100]
	}
	cpu := after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()
	return fmt.Sprintf("done %d %d %d %d %d %d %d %d", count, p50, p99, longest, made, cpu, after.Nvcsw-before.Nvcsw, after.Nivcsw-before.Nivcsw)
}

func about() string {
	info, _ := debug.ReadBuildInfo()
	for _, d := range info.Deps {
		if strings.HasPrefix(d.Path, "github.com/go-redsync/") {
			return "redsync " + d.Version + ", " + info.GoVersion
		}
	}
	return "redsync"
}

func main() {
	url := os.Args[1]
	client := connect(url)
	var held *redsync.Mutex
	fmt.Println("ready", about())
	for in := bufio.NewScanner(os.Stdin); in.Scan() && in.Text() != "end"; {
		words := strings.Fields(in.Text())
		switch words[0] {
		case "run":
			var threads int
			var warmMs, runMs int64
			fmt.Sscan(strings.Join(words[2:], " "), &threads, &warmMs, &runMs)
			fmt.Println(run(url, client, words[1], threads, warmMs, runMs))
		case "wait":
			held = newMutex(client, "redsync:"+words[1])
			must(held.Lock())
			fmt.Println("granted", now())
		case "release":
			instant := now()
			_, err := held.Unlock()
			must(err)
			fmt.Println("released", instant)
		default:
			fmt.Println("error unknown", words[0])
		}
	}
}
