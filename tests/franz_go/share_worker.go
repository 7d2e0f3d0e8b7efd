// A worker of a share group by franz-go, which does with a record what its value says and
// prints value and delivery count; see tests/support/share_workers.py.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
)

func verdict(value string, count int32) kgo.AckStatus {
	switch {
	case strings.HasPrefix(value, "bad"):
		return kgo.AckReject
	case strings.HasPrefix(value, "later") && count == 1:
		return kgo.AckRelease
	default:
		return kgo.AckAccept
	}
}

func main() {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(os.Args[1], ",")...),
		kgo.ShareGroup(os.Args[2]),
		kgo.ConsumeTopics(os.Args[3]),
	)
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		input := bufio.NewScanner(os.Stdin)
		for input.Scan() {
		}
		cancel()
	}()
	for ctx.Err() == nil {
		fetches := client.PollFetches(ctx)
		holds := false
		fetches.EachRecord(func(record *kgo.Record) {
			value, count := string(record.Value), record.DeliveryCount()
			if strings.HasPrefix(value, "hold") {
				holds = true
			} else {
				record.Ack(verdict(value, count))
			}
			fmt.Println(value, count)
		})
		if holds {
			<-ctx.Done()
		} else if err := client.FlushAcks(context.Background()); err != nil {
			panic(err)
		}
	}
	client.Close()
	fmt.Println("left")
}
