import { type DescMethod, getOption, hasOption } from '@bufbuild/protobuf';
import { http } from '../../gen/google/api/annotations_pb.ts';
import type { HttpRule as HttpRuleOption } from '../../gen/google/api/http_pb.ts';
import { methodName } from '../api/method.ts';
import { parseTemplate, type Template } from './template.ts';

/** One verb and path that a method answers. */
export interface HttpRule {
  readonly desc: DescMethod;
  /** Upper case. */
  readonly verb: string;
  readonly template: Template;
  /** Proto name of the field that takes the body, `*` for the request itself, empty for no body. */
  readonly body: string;
  /** Proto name of the field that is the reply, empty for the response itself. */
  readonly responseBody: string;
}

/**
 * The google.api.http rules of a method, additional bindings included; none when it has no rule.
 * Throws for an invalid rule.
 */
export function httpRules(desc: DescMethod): HttpRule[] {
  if (!hasOption(desc, http)) return [];
  const name = methodName(desc);
  if (desc.methodKind !== 'unary' && desc.methodKind !== 'server_streaming') {
    throw new Error(`${name}: only a method with one request can have a rule`);
  }
  const first = getOption(desc, http);
  return [first, ...first.additionalBindings].map((option) => {
    const { verb, path } = rulePattern(option, name);
    return {
      desc,
      verb,
      template: parseTemplate(path),
      body: option.body,
      // Additional bindings inherit the reply's shape unless they specify one.
      responseBody: option.responseBody === '' ? first.responseBody : option.responseBody,
    };
  });
}

function rulePattern({ pattern }: HttpRuleOption, name: string): { verb: string; path: string } {
  if (pattern.case === undefined) throw new Error(`${name}: a rule names no path`);
  if (pattern.case === 'custom') {
    return { verb: pattern.value.kind.toUpperCase(), path: pattern.value.path };
  }
  return { verb: pattern.case.toUpperCase(), path: pattern.value };
}
