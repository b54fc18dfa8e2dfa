import {
  create,
  type DescMessage,
  type DescMethodBiDiStreaming,
  type DescMethodUnary,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf';
import {
  Client,
  type ClientDuplexStream,
  credentials,
  Metadata,
  type ServiceError,
} from '@grpc/grpc-js';

/** A gRPC client of another implementation than the server's: grpc-js for the wire, generated types for the messages. */
export interface GrpcClient extends Disposable {
  call<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    token?: string,
  ): Promise<MessageShape<O>>;
  stream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodBiDiStreaming<I, O>,
    token?: string,
  ): ClientDuplexStream<MessageShape<I>, MessageShape<O>>;
}

/** Connects to `host:port` without TLS. Failed calls reject with grpc-js's `ServiceError`. */
export function createGrpcClient(address: string): GrpcClient {
  const client = new Client(address, credentials.createInsecure());
  const pathOf = (method: { parent: { typeName: string }; name: string }): string =>
    `/${method.parent.typeName}/${method.name}`;
  const metadataOf = (token: string | undefined): Metadata => {
    const metadata = new Metadata();
    if (token !== undefined) metadata.set('authorization', `Bearer ${token}`);
    return metadata;
  };
  return {
    call: (method, request, token) =>
      new Promise((resolve, reject) => {
        client.makeUnaryRequest(
          pathOf(method),
          (message) => Buffer.from(toBinary(method.input, message)),
          (bytes) => fromBinary(method.output, bytes),
          create(method.input, request),
          metadataOf(token),
          (error: ServiceError | null, reply) => {
            if (error !== null || reply === undefined) reject(error ?? new Error('no reply'));
            else resolve(reply);
          },
        );
      }),
    stream: (method, token) =>
      client.makeBidiStreamRequest(
        pathOf(method),
        (message: never) => Buffer.from(toBinary(method.input, message)),
        (bytes) => fromBinary(method.output, bytes),
        metadataOf(token),
      ) as never,
    [Symbol.dispose]: () => client.close(),
  };
}
