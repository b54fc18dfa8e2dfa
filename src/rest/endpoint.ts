import type { DescMessage } from '@bufbuild/protobuf';
import { methodName, type UnaryMethod } from '../api/method.ts';
import { compilePathParameter, type ParameterSetter } from './bind-parameters.ts';
import type { Exchange } from './exchange.ts';
import type { HttpRule } from './http-rule.ts';
import { percentDecoded } from './query-string.ts';
import { jsonReply, type Reply } from './reply.ts';
import { compileRequestBinder } from './request-binder.ts';
import { type Fields, fieldNamed } from './rest-fields.ts';
import type { TemplateVariable } from './template.ts';
import { compileMessageWriter, compileValueWriter } from './write-json.ts';

/**
 * Handles one request of a rule; `segments` are those of the path. Throws a GatewayError, or what
 * the method throws.
 */
export type Endpoint = (exchange: Exchange, segments: readonly string[]) => Promise<Reply>;

/** Makes the request message of a rule from an exchange and the segments of its path. */
export type RuleBinder = (exchange: Exchange, segments: readonly string[]) => Promise<Fields>;

/** Compiles the binding of a rule. Throws when the rule names a field that does not exist. */
export function compileRuleBinder(rule: HttpRule): RuleBinder {
  const { input } = rule.desc;
  const where = placeOf(rule);
  const bind = compileRequestBinder(input, rule.body, where);
  const variables = rule.template.variables.map((variable) => ({
    variable,
    set: compilePathParameter(input, variable.field, where),
  }));
  return async (exchange, segments) => {
    const request = await bind(exchange);
    // Bound last, so that the path wins: it selected the rule.
    for (const { variable, set } of variables) bindVariable(request, segments, variable, set);
    return request;
  };
}

/** Compiles a rule for its method. Throws as {@link compileRuleBinder} does. */
export function compileEndpoint(rule: HttpRule, method: UnaryMethod): Endpoint {
  const bind = compileRuleBinder(rule);
  const write = compileResponseWriter(rule.desc.output, rule.responseBody, placeOf(rule));

  return async (exchange, segments) => {
    const request = await bind(exchange, segments);
    return jsonReply(write(await method.handle(request, exchange.call)));
  };
}

function placeOf({ desc, verb, template }: HttpRule): string {
  return `${methodName(desc)} (${verb} ${template.source})`;
}

function bindVariable(
  request: Fields,
  segments: readonly string[],
  { from, to }: TemplateVariable,
  set: ParameterSetter,
): void {
  const [only = ''] = segments.slice(from, from + 1);
  const text = to === from + 1 ? only : segments.slice(from, to).join('/');
  set(request, percentDecoded(text));
}

function compileResponseWriter(output: DescMessage, responseBody: string, where: string) {
  if (responseBody === '') return compileMessageWriter(output);
  const field = fieldNamed(output, responseBody, where);
  const write = compileValueWriter(field);
  const whole = compileMessageWriter(output);
  return (response: unknown): string => {
    const value = (response as Record<string, unknown>)[field.localName];
    if (value !== undefined) return write(value);
    // A list that an initializer leaves out is empty; an absent message is an empty object.
    return field.fieldKind === 'list' ? '[]' : whole({});
  };
}
