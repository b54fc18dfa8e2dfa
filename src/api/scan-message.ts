import { isUtf8 } from 'node:buffer';
import { type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf';
import { getOrInsert } from '../domain/get-or-insert.ts';

/** Deeper messages are refused; requests of this API nest three levels deep. */
const MAX_DEPTH = 32;

/**
 * A longer JSON text whose first {@link PREFIX} characters are digits is refused: no field of this
 * API takes such a number.
 */
const MAX_DIGITS = 1_000;
const PREFIX = 64;

/**
 * Bytes that cannot be decoded as the message, or exceed its limits. `message` is for the client
 * and quotes nothing of the bytes.
 */
export class MessageFault extends Error {
  override readonly name = 'MessageFault';
  readonly reason: 'malformed_message' | 'too_many_fields';

  constructor(reason: MessageFault['reason'], message: string) {
    super(message);
    this.reason = reason;
  }
}

/**
 * Checks protobuf bytes before they are decoded. Throws a {@link MessageFault} for malformed bytes,
 * for deep nesting, and for more than `maxFields` fields at all levels together. A decoder
 * allocates hundreds of bytes for a field of two bytes.
 */
export function scanBinary(desc: DescMessage, bytes: Uint8Array, maxFields: number): void {
  const scan: BinaryScan = { bytes, at: 0, left: maxFields, maxFields };
  scanMessage(scan, fieldShapes(desc), bytes.byteLength, 1);
}

/**
 * Checks JSON bytes before they are parsed. Throws a {@link MessageFault} for deep nesting, and for
 * more than `maxFields` members and elements. It is no parser: the JSON parser that follows reports
 * syntax errors. Returns the number of members, if it is JSON.
 */
export function scanJson(bytes: Uint8Array, maxFields: number): number {
  let members = 0;
  let depth = 0;
  let left = maxFields;
  let inText = false;
  let began = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (inText) {
      if (byte === 0x5c) at += 1;
      else if (byte === 0x22) {
        inText = false;
        if (at - began > MAX_DIGITS) assertNoNumber(bytes, began);
      }
    } else if (byte === 0x22) {
      inText = true;
      began = at + 1;
    } else if (byte === 0x7b || byte === 0x5b) {
      depth += 1;
      left -= 1;
      if (depth > MAX_DEPTH) throw malformed(`it nests deeper than ${MAX_DEPTH}`);
      if (left < 0) throw tooManyFields(maxFields);
    } else if (byte === 0x7d || byte === 0x5d) depth -= 1;
    else if (byte === 0x3a) members += 1;
    else if (byte === 0x2c && --left < 0) throw tooManyFields(maxFields);
  }
  return members;
}

/** JSON writes 64-bit integers as strings, and a million digits take 100 ms to convert. */
function assertNoNumber(bytes: Uint8Array, began: number): void {
  let at = began;
  while ((bytes[at] as number) <= 0x20) at += 1;
  if (bytes[at] === 0x2d) at += 1;
  for (const digits = at + PREFIX; at < digits; at += 1) {
    const byte = bytes[at] as number;
    if (byte < 0x30 || byte > 0x39) return;
  }
  throw malformed('a number is too long');
}

// Wire types.
const VARINT = 0;
const FIXED_64 = 1;
const LENGTH_DELIMITED = 2;
const START_GROUP = 3;
const END_GROUP = 4;
const FIXED_32 = 5;

interface BinaryScan {
  readonly bytes: Uint8Array;
  readonly maxFields: number;
  at: number;
  left: number;
}

/** The facts about a field that the scan needs. */
interface FieldShape {
  readonly wireType: number;
  readonly isPackable: boolean;
  readonly isText: boolean;
  /** The fields of the nested message; a map's entry is a message of two fields. */
  readonly nested: (() => Fields) | undefined;
}

type Fields = ReadonlyMap<number, FieldShape>;

const known = new WeakMap<DescMessage, Fields>();

function fieldShapes(desc: DescMessage): Fields {
  return getOrInsert(
    known,
    desc,
    () => new Map(desc.fields.map((field) => [field.number, toFieldShape(field)])),
  );
}

function toFieldShape(field: DescField): FieldShape {
  if (field.fieldKind === 'map') {
    const entry = new Map([
      [1, scalarShape(field.mapKey, false)],
      [2, valueShape(field, false)],
    ]);
    return nestedShape(() => entry);
  }
  return valueShape(field, field.fieldKind === 'list');
}

function valueShape(field: DescField, isList: boolean): FieldShape {
  const { message } = field;
  if (message !== undefined) return nestedShape(() => fieldShapes(message));
  return scalarShape(field.scalar ?? ScalarType.INT32, isList);
}

function nestedShape(nested: () => Fields): FieldShape {
  return { wireType: LENGTH_DELIMITED, isPackable: false, isText: false, nested };
}

function scalarShape(scalar: ScalarType, isList: boolean): FieldShape {
  const wireType = toWireType(scalar);
  return {
    wireType,
    isPackable: isList && wireType !== LENGTH_DELIMITED,
    isText: scalar === ScalarType.STRING,
    nested: undefined,
  };
}

function toWireType(scalar: ScalarType): number {
  switch (scalar) {
    case ScalarType.STRING:
    case ScalarType.BYTES:
      return LENGTH_DELIMITED;
    case ScalarType.DOUBLE:
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
      return FIXED_64;
    case ScalarType.FLOAT:
    case ScalarType.FIXED32:
    case ScalarType.SFIXED32:
      return FIXED_32;
    default:
      return VARINT;
  }
}

function scanMessage(scan: BinaryScan, fields: Fields, end: number, depth: number): void {
  if (depth > MAX_DEPTH) throw malformed(`it nests deeper than ${MAX_DEPTH}`);
  while (scan.at < end) {
    const tag = readTag(scan, end);
    const number = Math.floor(tag / 8);
    const wireType = tag % 8;
    count(scan);
    const shape = fields.get(number);
    if (number === 0 || wireType === END_GROUP) throw malformed('a tag is not valid');
    if (shape === undefined) skip(scan, wireType, number, end, depth);
    else scanField(scan, shape, wireType, end, depth);
  }
}

function scanField(
  scan: BinaryScan,
  shape: FieldShape,
  wireType: number,
  end: number,
  depth: number,
): void {
  const isPacked = shape.isPackable && wireType === LENGTH_DELIMITED;
  // Decoders read a known field by its type and ignore the wire type of the tag.
  if (wireType !== shape.wireType && !isPacked) throw malformed('a field has the wrong wire type');
  if (wireType !== LENGTH_DELIMITED) {
    skip(scan, wireType, 0, end, depth);
    return;
  }
  const stop = readLength(scan, end);
  if (isPacked) {
    while (scan.at < stop) {
      count(scan);
      skip(scan, shape.wireType, 0, stop, depth);
    }
  } else if (shape.nested !== undefined) {
    scanMessage(scan, shape.nested(), stop, depth + 1);
  } else {
    if (shape.isText && !isUtf8(scan.bytes.subarray(scan.at, stop))) {
      throw malformed('a text is not UTF-8');
    }
    scan.at = stop;
  }
}

function skip(
  scan: BinaryScan,
  wireType: number,
  number: number,
  end: number,
  depth: number,
): void {
  switch (wireType) {
    case VARINT:
      readVarint(scan, end);
      return;
    case FIXED_64:
      scan.at += 8;
      break;
    case FIXED_32:
      scan.at += 4;
      break;
    case LENGTH_DELIMITED:
      scan.at = readLength(scan, end);
      break;
    case START_GROUP:
      skipGroup(scan, number, end, depth + 1);
      break;
    default:
      throw malformed('a wire type is not valid');
  }
  if (scan.at > end) throw malformed('it is cut short');
}

function skipGroup(scan: BinaryScan, number: number, end: number, depth: number): void {
  if (depth > MAX_DEPTH) throw malformed(`it nests deeper than ${MAX_DEPTH}`);
  for (;;) {
    const tag = readTag(scan, end);
    if (tag < 8) throw malformed('a tag is not valid');
    count(scan);
    if (tag % 8 === END_GROUP) {
      if (Math.floor(tag / 8) !== number) throw malformed('a group ends that did not begin');
      return;
    }
    skip(scan, tag % 8, Math.floor(tag / 8), end, depth);
  }
}

/** Reads a tag: 32 bits, in at most five bytes, as decoders take it. */
function readTag(scan: BinaryScan, end: number): number {
  const began = scan.at;
  const tag = readVarint(scan, end);
  if (tag > 0xffffffff || scan.at - began > 5) throw malformed('a tag is too large');
  return tag;
}

/** Reads a length, and returns the position after the bytes it covers. */
function readLength(scan: BinaryScan, end: number): number {
  const stop = readVarint(scan, end) + scan.at;
  if (stop > end) throw malformed('it is cut short');
  return stop;
}

/** Reads a varint; the value is not exact above 2^53. */
function readVarint(scan: BinaryScan, end: number): number {
  const { bytes } = scan;
  let value = 0;
  let scale = 1;
  for (let length = 1; length <= 10; length += 1) {
    if (scan.at >= end) throw malformed('it is cut short');
    const byte = bytes[scan.at] as number;
    scan.at += 1;
    value += (byte & 0x7f) * scale;
    if (byte < 0x80) return value;
    scale *= 128;
  }
  throw malformed('a number is too long');
}

function count(scan: BinaryScan): void {
  scan.left -= 1;
  if (scan.left < 0) throw tooManyFields(scan.maxFields);
}

/** The fault of a message that cannot be read; `what` completes a sentence. */
export function malformed(what: string): MessageFault {
  return new MessageFault('malformed_message', `The message is malformed: ${what}.`);
}

function tooManyFields(maxFields: number): MessageFault {
  return new MessageFault('too_many_fields', `The message has more than ${maxFields} fields.`);
}
