// Creates a crawler, pushes URLs in one batch and waits for their results, over gRPC.
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"regexp"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	pb "queuedcrawler/v1"
)

const crawler = "example-grpc-go"

var titlePattern = regexp.MustCompile(`(?s)<title>(.*?)</title>`)

func setting(name, fallback string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return fallback
}

// reasonOf returns the stable reason of a failed call, empty when it has none.
func reasonOf(err error) string {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			return info.GetReason()
		}
	}
	return ""
}

// resultOf waits for a result by asking for it. A webhook saves the asking.
func resultOf(ctx context.Context, storage pb.StorageServiceClient, rid string) (*pb.StoredResult, error) {
	for {
		reply, err := storage.GetResult(ctx, &pb.GetResultRequest{Rid: rid})
		if status.Code(err) != codes.NotFound {
			return reply.GetResult(), err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(250 * time.Millisecond):
		}
	}
}

// titleOf returns the title of a stored page, which is gzip-compressed.
func titleOf(body []byte) (string, error) {
	reader, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	page, err := io.ReadAll(reader)
	if err != nil {
		return "", err
	}
	if found := titlePattern.FindSubmatch(page); found != nil {
		return string(found[1]), nil
	}
	return "", nil
}

func run() error {
	targets := os.Args[1:]
	if len(targets) == 0 {
		targets = []string{"https://example.com/", "https://example.org/"}
	}
	// Pages are up to 10 MiB, the library's own limit is 4 MB. WithInsecure and Dial are older names that every
	// grpc-go 1.x has; with TLS, use WithTransportCredentials.
	connection, err := grpc.Dial(setting("ADDRESS", "127.0.0.1:8080"), grpc.WithInsecure(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(20<<20)))
	if err != nil {
		return err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+setting("TOKEN", "example-normal-token"))
	crawlers := pb.NewCrawlerServiceClient(connection)
	pushes := pb.NewPushServiceClient(connection)
	storage := pb.NewStorageServiceClient(connection)

	// Creating it again with the same values is allowed.
	concurrency := int32(5)
	if _, err := crawlers.CreateCrawler(ctx, &pb.CreateCrawlerRequest{Name: crawler, Concurrency: &concurrency}); err != nil {
		return err
	}

	// Sent again with the same RequestId after a failure, a batch is queued once.
	batch := &pb.PushBatchRequest{Crawler: crawler, RequestId: fmt.Sprintf("go-%d", time.Now().UnixNano())}
	for _, target := range targets {
		batch.Items = append(batch.Items, &pb.PushItem{Url: target})
	}
	reply, err := pushes.PushBatch(ctx, batch)
	if err != nil {
		return err
	}
	var rids []string
	for i, result := range reply.GetResults() {
		if refusal := result.GetError(); refusal != nil {
			fmt.Printf("refused %s: %s\n", targets[i], refusal.GetCode())
			continue
		}
		fmt.Printf("pushed %s as %s\n", targets[i], result.GetRid())
		rids = append(rids, result.GetRid())
	}

	for _, rid := range rids {
		result, err := resultOf(ctx, storage, rid)
		if err != nil {
			return err
		}
		title, err := titleOf(result.GetBody())
		if err != nil {
			return err
		}
		fmt.Printf("crawled: cb_status %d, title: %s\n", result.GetCbStatus(), title)
	}

	// An error's reason is for programs, its message for people.
	_, err = pushes.Push(ctx, &pb.PushRequest{Crawler: "no-such-crawler", Url: "https://example.com/"})
	fmt.Printf("expected error: %s, reason %s\n", status.Code(err), reasonOf(err))
	return nil
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}
