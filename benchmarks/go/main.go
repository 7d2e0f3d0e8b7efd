// Command rows runs one program of franz-go for benchmarks/rows: the counterpart of a
// function in benchmarks/rows/work. It takes its spec as JSON in the first argument and
// prints the result as JSON in its last line.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// spec has the names of the keys that the Python programs read.
type spec struct {
	Program     string   `json:"program"`
	Bootstrap   string   `json:"bootstrap"`
	Topic       string   `json:"topic"`
	Partitions  int32    `json:"partitions"`
	Records     int      `json:"records"`
	Values      string   `json:"values"`
	Keyed       bool     `json:"keyed"`
	Compression string   `json:"compression"`
	LingerMs    *float64 `json:"linger_ms"`
	CA          string   `json:"ca"`
	Group       string   `json:"group"`
	Callers     int      `json:"callers"`
	Each        int      `json:"each"`
	Spread      bool     `json:"spread"`
	Large       bool     `json:"large"`
	Seconds     float64  `json:"seconds"`
}

type result map[string]any

var (
	s       spec
	ctx     context.Context
	headers = []kgo.RecordHeader{
		{Key: "trace", Value: []byte("0123456789abcdef")},
		{Key: "source", Value: []byte("checkout-service")},
	}
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "franz-go:", err)
		os.Exit(1)
	}
}

// ---- what is measured

func cpu() float64 {
	var used syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return seconds(used.Utime) + seconds(used.Stime)
}

func memory(field string) float64 {
	status, err := os.ReadFile("/proc/self/status")
	must(err)
	for _, line := range strings.Split(string(status), "\n") {
		if strings.HasPrefix(line, field+":") {
			kib, err := strconv.ParseFloat(strings.Fields(line)[1], 64)
			must(err)
			return kib / 1024
		}
	}
	must(errors.New("no " + field))
	return 0
}

type window struct {
	began time.Time
	cpu   float64
}

func open() window { return window{time.Now(), cpu()} }

func (w window) close(count int) result {
	return result{"count": count, "wall": time.Since(w.began).Seconds(), "cpu": cpu() - w.cpu}
}

// ---- clients

func client(more ...kgo.Opt) *kgo.Client {
	options := []kgo.Opt{kgo.SeedBrokers(s.Bootstrap)}
	if s.CA != "" {
		pem, err := os.ReadFile(s.CA)
		must(err)
		authorities := x509.NewCertPool()
		authorities.AppendCertsFromPEM(pem)
		options = append(options, kgo.DialTLSConfig(&tls.Config{RootCAs: authorities}))
	}
	made, err := kgo.NewClient(append(options, more...)...)
	must(err)
	return made
}

func producer(more ...kgo.Opt) *kgo.Client {
	codec := map[string]kgo.CompressionCodec{
		"": kgo.NoCompression(), "none": kgo.NoCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}[s.Compression]
	options := []kgo.Opt{kgo.DefaultProduceTopic(s.Topic), kgo.ProducerBatchCompression(codec)}
	if s.LingerMs != nil {
		linger := time.Duration(*s.LingerMs * float64(time.Millisecond))
		options = append(options, kgo.ProducerLinger(linger))
	}
	if s.Large {
		options = append(options, kgo.ProducerBatchMaxBytes(8<<20), kgo.MaxBufferedBytes(64<<20))
	}
	return client(append(options, more...)...)
}

func reader(more ...kgo.Opt) *kgo.Client {
	at := map[int32]kgo.Offset{}
	for number := int32(0); number < s.Partitions; number++ {
		at[number] = kgo.NewOffset().AtStart()
	}
	places := kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{s.Topic: at})
	return client(append([]kgo.Opt{places}, more...)...)
}

func member(more ...kgo.Opt) *kgo.Client {
	options := []kgo.Opt{kgo.ConsumerGroup(s.Group), kgo.ConsumeTopics(s.Topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit()}
	return client(append(options, more...)...)
}

func values() [][]byte {
	text, err := os.ReadFile(s.Values)
	must(err)
	return bytes.Split(text, []byte("\n"))
}

func records() func(int) *kgo.Record {
	all := values()
	keys := make([][]byte, 997)
	for number := range keys {
		keys[number] = fmt.Appendf(nil, "key-%012d", number)
	}
	if s.Keyed {
		return func(number int) *kgo.Record {
			return &kgo.Record{Value: all[number%len(all)], Key: keys[number%len(keys)], Headers: headers}
		}
	}
	return func(number int) *kgo.Record { return &kgo.Record{Value: all[number%len(all)]} }
}

// ---- programs

func produce() result {
	record := records()
	cl := producer()
	must(cl.ProduceSync(ctx, record(0)).FirstErr())
	written := 1
	if s.Spread {
		chosen := producer(kgo.RecordPartitioner(kgo.ManualPartitioner()))
		for number := int32(0); number < s.Partitions; number++ {
			first := record(0)
			first.Partition = number
			chosen.Produce(ctx, first, func(_ *kgo.Record, err error) { must(err) })
		}
		must(chosen.Flush(ctx))
		chosen.Close()
		written += int(s.Partitions)
	}
	var acknowledged, offsets atomic.Int64
	done := func(record *kgo.Record, err error) {
		must(err)
		acknowledged.Add(1)
		offsets.Add(record.Offset)
	}
	w := open()
	for number := 0; number < s.Records; number++ {
		cl.Produce(ctx, record(number), done)
	}
	must(cl.Flush(ctx))
	found := w.close(int(acknowledged.Load()))
	found["written"] = written + s.Records
	cl.Close()
	return found
}

func await() result {
	record := records()
	cl := producer()
	must(cl.ProduceSync(ctx, record(0)).FirstErr())
	waits := []float64{}
	var lock sync.Mutex
	var callers sync.WaitGroup
	w := open()
	for caller := 0; caller < s.Callers; caller++ {
		callers.Go(func() {
			own := []float64{}
			for number := 0; number < s.Records/s.Callers; number++ {
				began := time.Now()
				must(cl.ProduceSync(ctx, record(number)).FirstErr())
				own = append(own, time.Since(began).Seconds())
			}
			lock.Lock()
			defer lock.Unlock()
			waits = append(waits, own...)
		})
	}
	callers.Wait()
	found := w.close(len(waits))
	sort.Float64s(waits)
	found["median"] = waits[len(waits)/2]
	found["written"] = len(waits) + 1
	cl.Close()
	return found
}

func transact() result {
	record := records()
	cl := producer(kgo.TransactionalID("rows-" + strconv.Itoa(os.Getpid())))
	once := func() {
		must(cl.BeginTransaction())
		for number := 0; number < s.Each; number++ {
			cl.Produce(ctx, record(number), func(_ *kgo.Record, err error) { must(err) })
		}
		must(cl.Flush(ctx))
		must(cl.EndTransaction(ctx, kgo.TryCommit))
	}
	once()
	w := open()
	for number := 0; number < s.Records; number++ {
		once()
	}
	found := w.close(s.Records)
	found["written"] = s.Each * (s.Records + 1)
	cl.Close()
	return found
}

func take(cl *kgo.Client, wanted int) int {
	count, size := 0, 0
	for count < wanted {
		fetches := cl.PollFetches(ctx)
		fetches.EachError(func(_ string, _ int32, err error) { must(err) })
		fetches.EachRecord(func(record *kgo.Record) {
			count++
			size += len(record.Key) + len(record.Value)
			if s.Keyed {
				for _, header := range record.Headers {
					size += len(header.Value)
				}
			}
		})
	}
	return count
}

func consume() result {
	cl := reader()
	w := open()
	found := w.close(take(cl, s.Records))
	cl.Close()
	return found
}

func firstAck() result {
	began := time.Now()
	cl := producer()
	must(cl.ProduceSync(ctx, records()(0)).FirstErr())
	found := result{"count": 1, "wall": time.Since(began).Seconds(), "cpu": cpu(), "written": 1}
	cl.Close()
	return found
}

func firstRecord() result {
	began := time.Now()
	var cl *kgo.Client
	if s.Group == "" {
		cl = reader()
	} else {
		cl = member()
	}
	take(cl, 1)
	found := result{"count": 1, "wall": time.Since(began).Seconds(), "cpu": cpu()}
	cl.Close()
	return found
}

func commitEach() result {
	cl := member()
	left := []*kgo.Record{}
	next := func() {
		for len(left) == 0 {
			fetches := cl.PollRecords(ctx, 500)
			fetches.EachError(func(_ string, _ int32, err error) { must(err) })
			left = fetches.Records()
		}
		must(cl.CommitRecords(ctx, left[0]))
		left = left[1:]
	}
	next()
	w := open()
	for number := 0; number < s.Records; number++ {
		next()
	}
	found := w.close(s.Records)
	cl.Close()
	return found
}

func slow() result {
	before := memory("VmRSS")
	cl := reader()
	count := 0
	for end := time.Now().Add(time.Duration(s.Seconds * float64(time.Second))); time.Now().Before(end); {
		fetches := cl.PollRecords(ctx, 1)
		fetches.EachError(func(_ string, _ int32, err error) { must(err) })
		count += fetches.NumRecords()
		time.Sleep(time.Millisecond)
	}
	found := result{"count": count, "memory": memory("VmHWM") - before}
	cl.Close()
	return found
}

func idle() result {
	cl := reader()
	count := take(cl, s.Records)
	waiting, stop := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() { defer close(over); cl.PollFetches(waiting) }()
	time.Sleep(2 * time.Second)
	w := open()
	time.Sleep(time.Duration(s.Seconds * float64(time.Second)))
	found := w.close(count)
	stop()
	<-over
	cl.Close()
	return found
}

// handover measures from the constructor of a second member to its first record. The
// first member owned all partitions, has records of them buffered, and reads on slowly.
func handover() result {
	one := member(kgo.ServerSideBalancer())
	take(one, 1)
	reading, stop := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		for reading.Err() == nil {
			one.PollRecords(reading, 1)
			time.Sleep(5 * time.Millisecond)
		}
	}()
	began := time.Now()
	two := member(kgo.ServerSideBalancer())
	take(two, 1)
	found := result{"count": 1, "wall": time.Since(began).Seconds(), "cpu": cpu()}
	stop()
	<-over
	two.Close()
	one.Close()
	return found
}

func main() {
	must(json.Unmarshal([]byte(os.Args[1]), &s))
	var stop context.CancelFunc
	ctx, stop = context.WithTimeout(context.Background(), 100*time.Second)
	defer stop()
	programs := map[string]func() result{
		"produce": produce, "await": await, "transact": transact, "consume": consume,
		"first_ack": firstAck, "first_record": firstRecord, "commit_each": commitEach,
		"slow": slow, "idle": idle, "handover": handover,
	}
	program, ok := programs[s.Program]
	if !ok {
		must(errors.New("no program " + s.Program))
	}
	text, err := json.Marshal(program())
	must(err)
	fmt.Println(string(text))
}
