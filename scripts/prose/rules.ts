/** A run of text that is read as one: a paragraph, a list item, a table cell, a comment. */
export interface Passage {
  readonly line: number;
  readonly text: string;
}

/** One thing that a reader would stumble over. */
export interface Complaint {
  readonly line: number;
  readonly message: string;
}

/** The longest sentence, in words; what stands in code counts as one word. */
const MAX_WORDS = 30;

/** Expressions that have a plainer word. */
const PLAINER: readonly (readonly [pattern: RegExp, instead: string])[] = [
  [/\bbeside\b/i, '"in addition to", "next to" or "besides"'],
  [/\b(?:go|goes|going|went|gone) on\b/i, '"continue"'],
  [/\b(?:is|are|was|were|be) none\b/i, '"there is no ..." or "not a ..."'],
  [/\bso (?:many|long|often|few)\b/i, 'the quantity by its name'],
  [/\blest\b/i, '"so that ... not"'],
  [/\bwhoever\b/i, 'the name of the part'],
  [/\bmeanwhile\b/i, '"during that time", or nothing'],
  [/\bdear\b/i, '"expensive"'],
  [/\b(?:broke|breaks|broken) off\b/i, '"failed unexpectedly" or "was aborted"'],
  [/\b(?:is|are|was|were|be) away\b/i, '"is unavailable" or "does not answer"'],
  [/\b(?:may|can) so\b/i, '"thus", or nothing'],
];

const sentences = new Intl.Segmenter('en', { granularity: 'sentence' });

/** Returns what is wrong with a passage. */
export function complaintsOf({ line, text: wrapped }: Passage): Complaint[] {
  const text = wrapped.replaceAll(/\s+/g, ' ');
  const plain = PLAINER.flatMap(([pattern, instead]) => {
    const found = pattern.exec(text);
    return found === null ? [] : [{ line, message: `"${found[0]}": say ${instead}` }];
  });
  const long = sentencesOf(text).flatMap((sentence) => {
    const words = wordsOf(sentence);
    if (words.length <= MAX_WORDS) return [];
    return [{ line, message: `${words.length} words: ${words.slice(0, 8).join(' ')} ...` }];
  });
  return [...plain, ...long];
}

/** Splits at the ends of sentences, not behind abbreviations. */
function sentencesOf(text: string): string[] {
  const whole: string[] = [];
  let part = '';
  for (const { segment } of sentences.segment(text)) {
    part += segment;
    if (/\b(?:e\.g|i\.e|vs|etc|St|No)\.\s*$/.test(segment)) continue;
    whole.push(part);
    part = '';
  }
  return part === '' ? whole : [...whole, part];
}

function wordsOf(sentence: string): string[] {
  return sentence.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word));
}
