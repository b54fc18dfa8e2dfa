import type { DescMessage } from '@bufbuild/protobuf';
import { base64Decode } from '@bufbuild/protobuf/wire';
import { Code, ConnectError } from '@connectrpc/connect';
import { compressionBrotli, compressionGzip } from '@connectrpc/connect-node';
import type { Call } from '../api/method.ts';
import { parseJson } from '../api/parse-json.ts';
import { type MethodPolicy, maxBytesFor } from '../api/policy.ts';
import { MessageFault, malformed, scanBinary } from '../api/scan-message.ts';
import { DomainError } from '../domain/errors.ts';
import type { AnyRequest } from '../http/node-http.ts';
import { BodyFault, bodyTimeMs, declaredLength, receiveBody } from '../http/receive-body.ts';
import type { JsonCheck, RefusedElement } from './check-json.ts';
import { createFrameReader } from './frame-reader.ts';

/** How the messages of a request are encoded, by its Content-Type. */
export interface WireShape {
  readonly isBinary: boolean;
  /**
   * Whether five bytes before each message give its length (gRPC, gRPC-Web, streams of Connect).
   */
  readonly isFramed: boolean;
  /** The header that names the compression. */
  readonly encodingHeader: string;
  /**
   * The flag of a final frame that is not a message; undefined for a protocol without such frames.
   */
  readonly endFlag?: number;
}

/** The messages of a method, and their limits. */
export interface IntakeShape {
  readonly input: DescMessage;
  readonly checkJson: JsonCheck;
  readonly policy: MethodPolicy;
}

/** The messages and the call of an intake. */
export interface IntakeOptions extends IntakeShape {
  /** Whether the client may send messages without a time limit. */
  readonly isStream: boolean;
  /** Available once the admission has accepted the call, before anything is read. */
  readonly call: () => Call;
  /** Called for each JSON message, in order: its elements that are refused by themselves. */
  readonly onChecked: (refused: readonly RefusedElement[]) => void;
}

/** The compressions of requests and replies. */
export const acceptCompression = [compressionGzip, compressionBrotli];

const COMPRESSED = 1;
const CONNECT_END = 2;
const HEAD_BYTES = 5;

/** The encoding of a request's messages; undefined for a Content-Type of no protocol. */
export function parseWireShape(contentType: string | undefined): WireShape | undefined {
  const found =
    /^application\/(?:(grpc-web-text|grpc-web|grpc|connect)(?:\+(json|proto))?|(json|proto))\b/i.exec(
      contentType ?? '',
    );
  if (found === null) return undefined;
  const [, protocol, framedFormat, plainFormat] = found;
  const isBinary = (framedFormat ?? plainFormat ?? 'proto').toLowerCase() === 'proto';
  if (protocol === undefined) {
    return { isBinary, isFramed: false, encodingHeader: 'content-encoding' };
  }
  const isConnect = protocol.toLowerCase() === 'connect';
  return isConnect
    ? { isBinary, isFramed: true, encodingHeader: 'connect-content-encoding', endFlag: CONNECT_END }
    : { isBinary, isFramed: true, encodingHeader: 'grpc-encoding' };
}

/**
 * Yields the messages of a request in the form that the protocol's handler expects, but never
 * compressed. They stay within the method's limits of size and fields, are scanned before they are
 * decoded, take claimed memory, and arrive in time. Nothing is read before the first is requested.
 * Throws DomainError, or ConnectError.
 */
export async function* readMessages(
  request: AnyRequest,
  shape: WireShape,
  options: IntakeOptions,
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    if (shape.isFramed) yield* framedMessages(request, shape, options);
    else yield await plainMessage(request, shape, options);
  } catch (error) {
    throw toWireError(error);
  }
}

/** Checks the message in the query of a Connect GET. Throws DomainError. */
export async function checkQueryMessage(url: string, shape: IntakeShape): Promise<void> {
  const { searchParams: query } = new URL(url);
  const message = query.get('message') ?? '';
  const { maxBytes } = shape.policy;
  try {
    const sent = query.get('base64') === '1' ? base64(message) : Buffer.from(message);
    const bytes = await unpacked(sent, query.get('compression') ?? undefined, maxBytes);
    if (bytes.byteLength > maxBytes) throw new BodyFault('too_large');
    scan(bytes, query.get('encoding') === 'proto', shape);
  } catch (error) {
    throw toWireError(error);
  }
}

async function plainMessage(
  request: AnyRequest,
  shape: WireShape,
  options: IntakeOptions,
): Promise<Uint8Array> {
  const { policy, call } = options;
  const maxBytes = maxBytesFor(policy, call());
  const encoding = bodyEncoding(request, shape);
  const expected = Math.min(declaredLength(request) ?? maxBytes, maxBytes);
  await call().room.take(roomFor(expected, encoding, maxBytes));
  const bytes = await unpacked(await receiveBody(request, maxBytes), encoding, maxBytes);
  await call().room.readTurn(bytes.byteLength);
  return checked(bytes, shape.isBinary, options);
}

async function* framedMessages(
  request: AnyRequest,
  shape: WireShape,
  options: IntakeOptions,
): AsyncGenerator<Uint8Array, void, undefined> {
  const { policy, isStream, call } = options;
  const reader = createFrameReader(request);
  const encoding = bodyEncoding(request, shape);
  const maxBytes = maxBytesFor(policy, call());
  for (;;) {
    // A stream of a known caller may pause between messages.
    const mayRest = isStream && call().caller !== undefined;
    const head = await reader.read(HEAD_BYTES, mayRest ? undefined : bodyTimeMs(0));
    if (head === undefined) return;
    const flags = head[0] as number;
    const length = head.readUInt32BE(1);
    if (length > maxBytes) throw new BodyFault('too_large');
    const isCompressed = (flags & COMPRESSED) !== 0;
    if (isCompressed && encoding === undefined) throw malformed('it is compressed with nothing');
    const used = isCompressed ? encoding : undefined;
    const grant = await call().room.take(roomFor(length, used, maxBytes));
    const data = await reader.read(length, bodyTimeMs(length));
    if (data === undefined) throw new BodyFault('incomplete');
    const message = await unpacked(data, used, maxBytes);
    const others = flags & ~COMPRESSED;
    if (others !== 0 && others !== shape.endFlag) throw malformed('its flags are not known');
    await call().room.readTurn(message.byteLength);
    yield framed(others, others === 0 ? checked(message, shape.isBinary, options) : message);
    // The next message of a stream is requested after this one has been handled; a unary method
    // uses its message until its end.
    if (isStream) grant.release();
  }
}

function framed(flags: number, data: Uint8Array): Uint8Array {
  const bytes = Buffer.allocUnsafe(HEAD_BYTES + data.byteLength);
  bytes[0] = flags;
  bytes.writeUInt32BE(data.byteLength, 1);
  bytes.set(data, HEAD_BYTES);
  return bytes;
}

/**
 * The memory for the bytes of a message and the decoded message; a compressed one may be as long as
 * the limit.
 */
function roomFor(length: number, encoding: string | undefined, maxBytes: number): number {
  return encoding === undefined ? length * 2 : length + maxBytes * 2;
}

function bodyEncoding(request: AnyRequest, shape: WireShape): string | undefined {
  const encoding = request.headers[shape.encodingHeader];
  return typeof encoding !== 'string' || encoding === 'identity' ? undefined : encoding;
}

async function unpacked(
  bytes: Uint8Array,
  encoding: string | undefined,
  maxBytes: number,
): Promise<Uint8Array> {
  if (encoding === undefined || bytes.byteLength === 0) return bytes;
  const compression = acceptCompression.find(({ name }) => name === encoding);
  if (compression === undefined) throw malformed('its compression is not known');
  try {
    return await compression.decompress(bytes, maxBytes);
  } catch (error) {
    if (error instanceof ConnectError && error.code === Code.ResourceExhausted) {
      throw new BodyFault('too_large');
    }
    throw malformed(`it is not ${encoding}`);
  }
}

/** Scans a message, and checks its JSON. Returns it without the elements that are refused by themselves. */
function checked(bytes: Uint8Array, isBinary: boolean, options: IntakeOptions): Uint8Array {
  const json = scan(bytes, isBinary, options);
  if (json === undefined) return bytes;
  options.onChecked(json.refused);
  return json.refused.length === 0 ? bytes : Buffer.from(JSON.stringify(json.message));
}

function scan(
  bytes: Uint8Array,
  isBinary: boolean,
  { input, policy: { maxFields }, checkJson }: IntakeShape,
): { readonly message: unknown; readonly refused: readonly RefusedElement[] } | undefined {
  if (isBinary) {
    scanBinary(input, bytes, maxFields);
    return undefined;
  }
  const message = parsedJson(bytes, maxFields);
  return { message, refused: checkJson(message) };
}

function parsedJson(bytes: Uint8Array, maxFields: number): unknown {
  try {
    return parseJson(bytes, maxFields);
  } catch (error) {
    if (error instanceof MessageFault) throw error;
    // The parser's error text quotes the message.
    throw malformed('it is not JSON');
  }
}

function base64(text: string): Uint8Array {
  try {
    return base64Decode(text);
  } catch {
    // The decoder's error text quotes the message.
    throw malformed('it is not base64');
  }
}

function toWireError(error: unknown): unknown {
  if (error instanceof MessageFault) {
    return new DomainError('invalid', error.reason, error.message);
  }
  if (!(error instanceof BodyFault)) return error;
  switch (error.kind) {
    case 'too_large':
      return new DomainError('exhausted', 'message_too_large', 'The message is too long.');
    case 'incomplete':
      return toWireError(malformed('it is cut short'));
    case 'too_slow':
      return new ConnectError('The message did not come in time.', Code.DeadlineExceeded);
  }
}
