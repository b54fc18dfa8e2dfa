import { type DescEnum, getOption, hasOption } from '@bufbuild/protobuf';
import { rest_name } from '../../gen/queuedcrawler/v1/options_pb.ts';
import { isReplyOnly } from '../api/message-options.ts';
import { getOrInsert } from '../domain/get-or-insert.ts';

/** The names of an enum's values over REST. */
export interface EnumNames {
  /** The name of a value, or the number itself when the value is unknown. */
  toName(value: number): string | number;
  /**
   * The value by its REST name or full name, in any case; undefined for an unknown name, and for that
   * of a value which only replies have.
   */
  valueOf(text: string): number | undefined;
  /** All names but the empty one, in the order of the proto. */
  readonly words: readonly string[];
  /** Those of `words` that a request may have. */
  readonly requestWords: readonly string[];
}

const cache = new WeakMap<DescEnum, EnumNames>();

/** The REST names of an enum. Throws when a value has no `rest_name` or two share one. */
export function enumNames(desc: DescEnum): EnumNames {
  return getOrInsert(cache, desc, () => readNames(desc));
}

function readNames(desc: DescEnum): EnumNames {
  const words = new Map<number, string>();
  const values = new Map<string, number>();
  for (const value of desc.values) {
    if (!hasOption(value, rest_name)) {
      throw new Error(`${desc.typeName}: ${value.name} has no rest_name`);
    }
    const word = getOption(value, rest_name);
    if (values.has(word.toLowerCase())) {
      throw new Error(`${desc.typeName}: rest_name "${word}" is given twice`);
    }
    values.set(word.toLowerCase(), value.number);
    words.set(value.number, word);
  }
  for (const value of desc.values) values.set(value.name.toLowerCase(), value.number);
  const ofReplies = desc.values.filter(isReplyOnly);
  for (const value of ofReplies) {
    values.delete(value.name.toLowerCase());
    values.delete(getOption(value, rest_name).toLowerCase());
  }
  const named = [...words].filter(([, word]) => word !== '');
  const numbersOfReplies = new Set(ofReplies.map((value) => value.number));
  return {
    toName: (value) => words.get(value) ?? value,
    valueOf: (text) => values.get(text.toLowerCase()),
    words: named.map(([, word]) => word),
    requestWords: named.flatMap(([number, word]) => (numbersOfReplies.has(number) ? [] : word)),
  };
}
