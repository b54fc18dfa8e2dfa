import { stdSerializers } from 'pino';

/**
 * The fields of an error in the log, with each message of its causes once. The driver of MongoDB wraps
 * an error up to three times under the same message.
 */
export function errorFields(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const chain = new Set<Error>();
  // An error may be among its own causes.
  for (let each: unknown = error; each instanceof Error && !chain.has(each); each = each.cause) {
    chain.add(each);
  }
  const messages: string[] = [];
  for (const { message } of chain) {
    if (!messages.some((text) => text.includes(message))) messages.push(message);
  }
  const fields = stdSerializers.err(error);
  fields.message = messages.join(': ');
  return fields;
}
