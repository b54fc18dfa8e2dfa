import { type DescMethod, getOption, hasOption } from '@bufbuild/protobuf';
import { admin_only, call_limits } from '../../gen/queuedcrawler/v1/options_pb.ts';
import type { Call } from './method.ts';

/** Who may call: anybody, the owner of a token, or the operator with the admin token. */
export type Access = 'public' | 'account' | 'admin';

/** The limits of a method's request, and who may call it. */
export interface MethodPolicy {
  readonly access: Access;
  /** Longest request message, unpacked. */
  readonly maxBytes: number;
  /** Most fields of a request message, at all levels together. */
  readonly maxFields: number;
  /** Whether a call takes one of the slots that accounts share. */
  readonly takesSlot: boolean;
  /** Memory that is reserved while the method reads, in bytes; 0 for what reads little. */
  readonly readBytes: number;
}

const KIB = 1024;

/**
 * The longest message of a call whose token is in the message: it is read before the caller is
 * known. Longer ones need `authorization: Bearer`, or over REST the token in path or query.
 */
export const MAX_UNKNOWN_CALLER_BYTES = 64 * KIB;

const unauthenticated: MethodPolicy = {
  access: 'public',
  maxBytes: 4 * KIB,
  maxFields: 64,
  takesSlot: false,
  readBytes: 0,
};

/** Services for programs that look after the process; they have no options of ours. */
const PUBLIC_SERVICES: ReadonlySet<string> = new Set([
  'grpc.health.v1.Health',
  'grpc.reflection.v1.ServerReflection',
  'grpc.reflection.v1alpha.ServerReflection',
]);

/** The policy of a method, by its options in the proto. */
export function methodPolicy(desc: DescMethod): MethodPolicy {
  if (PUBLIC_SERVICES.has(desc.parent.typeName)) return unauthenticated;
  const limits = hasOption(desc, call_limits) ? getOption(desc, call_limits) : undefined;
  return {
    access: getOption(desc.parent, admin_only) ? 'admin' : 'account',
    maxBytes: limits?.maxBytes ?? 64 * KIB,
    maxFields: limits?.maxFields ?? 4_096,
    takesSlot: limits?.withoutSlot !== true,
    readBytes: limits?.readBytes ?? 0,
  };
}

/** The longest message that is read of a call, depending on whether the caller is known. */
export function maxBytesFor(policy: MethodPolicy, call: Pick<Call, 'caller'>): number {
  if (policy.access !== 'account' || call.caller !== undefined) return policy.maxBytes;
  return Math.min(policy.maxBytes, MAX_UNKNOWN_CALLER_BYTES);
}
