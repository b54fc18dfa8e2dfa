import com.google.rpc.ErrorInfo;
import com.google.rpc.Status;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.ForwardingClientCall.SimpleForwardingClientCall;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status.Code;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.lite.ProtoLiteUtils;
import java.io.ByteArrayInputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.zip.GZIPInputStream;
import queuedcrawler.v1.CrawlerServiceGrpc;
import queuedcrawler.v1.CreateCrawlerRequest;
import queuedcrawler.v1.GetResultRequest;
import queuedcrawler.v1.PushBatchRequest;
import queuedcrawler.v1.PushItem;
import queuedcrawler.v1.PushRequest;
import queuedcrawler.v1.PushResult;
import queuedcrawler.v1.PushServiceGrpc;
import queuedcrawler.v1.StorageServiceGrpc;
import queuedcrawler.v1.StoredResult;

/** Creates a crawler, pushes URLs in one batch and waits for their results, over gRPC. */
public final class Crawl {
  private static final String CRAWLER = "example-grpc-java";
  private static final Metadata.Key<String> AUTHORIZATION =
      Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER);
  private static final Metadata.Key<Status> DETAILS =
      Metadata.Key.of(
          "grpc-status-details-bin",
          ProtoLiteUtils.metadataMarshaller(Status.getDefaultInstance()));

  /** Gives every call the token, and a deadline. */
  private static ClientInterceptor authorize(String token) {
    return new ClientInterceptor() {
      @Override
      public <Q, R> ClientCall<Q, R> interceptCall(
          MethodDescriptor<Q, R> method, CallOptions options, Channel next) {
        CallOptions timely = options.withDeadlineAfter(30, TimeUnit.SECONDS);
        return new SimpleForwardingClientCall<Q, R>(next.newCall(method, timely)) {
          @Override
          public void start(Listener<R> listener, Metadata headers) {
            headers.put(AUTHORIZATION, "Bearer " + token);
            super.start(listener, headers);
          }
        };
      }
    };
  }

  /** The stable reason of a failed call; empty when it has none. */
  private static String reasonOf(StatusRuntimeException error) throws Exception {
    Status status = error.getTrailers() == null ? null : error.getTrailers().get(DETAILS);
    if (status == null) return "";
    for (com.google.protobuf.Any detail : status.getDetailsList()) {
      if (detail.is(ErrorInfo.class)) return detail.unpack(ErrorInfo.class).getReason();
    }
    return "";
  }

  /** Waits for a result by asking for it. A webhook or StreamResults saves the asking. */
  private static StoredResult resultOf(
      StorageServiceGrpc.StorageServiceBlockingStub storage, String rid) throws Exception {
    long giveUpAt = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
    while (System.nanoTime() < giveUpAt) {
      try {
        return storage.getResult(GetResultRequest.newBuilder().setRid(rid).build()).getResult();
      } catch (StatusRuntimeException error) {
        if (error.getStatus().getCode() != Code.NOT_FOUND) throw error;
      }
      Thread.sleep(250);
    }
    throw new IllegalStateException(rid + " has no result after 60 s.");
  }

  private static String setting(String name, String otherwise) {
    return System.getenv().getOrDefault(name, otherwise);
  }

  public static void main(String[] args) throws Exception {
    List<String> targets =
        args.length > 0 ? List.of(args) : List.of("https://example.com/", "https://example.org/");
    ManagedChannel channel =
        ManagedChannelBuilder.forTarget(setting("ADDRESS", "127.0.0.1:8080"))
            .usePlaintext()
            // Pages are up to 10 MiB, the library's own limit is 4 MiB.
            .maxInboundMessageSize(20 * 1024 * 1024)
            .intercept(authorize(setting("TOKEN", "example-normal-token")))
            .build();
    try {
      // Creating it again with the same values is allowed.
      CrawlerServiceGrpc.newBlockingStub(channel)
          .createCrawler(
              CreateCrawlerRequest.newBuilder().setName(CRAWLER).setConcurrency(5).build());
      PushServiceGrpc.PushServiceBlockingStub pushes = PushServiceGrpc.newBlockingStub(channel);
      StorageServiceGrpc.StorageServiceBlockingStub storage =
          StorageServiceGrpc.newBlockingStub(channel);

      // Sent again with the same request_id after a failure, a batch is queued once.
      PushBatchRequest.Builder batch =
          PushBatchRequest.newBuilder()
              .setCrawler(CRAWLER)
              .setRequestId(UUID.randomUUID().toString());
      for (String target : targets) batch.addItems(PushItem.newBuilder().setUrl(target));
      List<PushResult> results = pushes.pushBatch(batch.build()).getResultsList();
      List<String> rids = new ArrayList<>();
      for (int i = 0; i < results.size(); i++) {
        PushResult result = results.get(i);
        if (result.hasError()) {
          System.out.println("refused " + targets.get(i) + ": " + result.getError().getCode());
        } else {
          System.out.println("pushed " + targets.get(i) + " as " + result.getRid());
          rids.add(result.getRid());
        }
      }

      for (String rid : rids) {
        StoredResult result = resultOf(storage, rid);
        // Stored pages are gzip-compressed.
        GZIPInputStream page =
            new GZIPInputStream(new ByteArrayInputStream(result.getBody().toByteArray()));
        String text = new String(page.readAllBytes(), StandardCharsets.UTF_8);
        Matcher title = Pattern.compile("<title>(.*?)</title>", Pattern.DOTALL).matcher(text);
        System.out.println(
            "crawled: cb_status "
                + result.getCbStatus()
                + ", title: "
                + (title.find() ? title.group(1) : null));
      }

      // An error's reason is for programs, its message for people.
      try {
        pushes.push(
            PushRequest.newBuilder()
                .setCrawler("no-such-crawler")
                .setUrl("https://example.com/")
                .build());
      } catch (StatusRuntimeException error) {
        System.out.println(
            "expected error: " + error.getStatus().getCode() + ", reason " + reasonOf(error));
      }
    } finally {
      channel.shutdown();
    }
  }
}
