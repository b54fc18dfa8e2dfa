/** How the program ends, for scripts; each meaning is a row of docs/cli.md. */
export const EXIT_CODE = {
  ok: 0,
  failed: 1,
  usage: 2,
  denied: 3,
  notFound: 4,
  refused: 5,
  unavailable: 6,
  partly: 7,
  interrupted: 130,
} as const;

/** One of the codes. */
export type ExitCode = (typeof EXIT_CODE)[keyof typeof EXIT_CODE];

/** What each code says, for the documents. */
export const EXIT_MEANINGS: Readonly<Record<keyof typeof EXIT_CODE, string>> = {
  ok: 'Everything was done.',
  failed: 'Something else went wrong: a page that could not be crawled, a file, a fault.',
  usage: 'The command, a setting or a value cannot be accepted.',
  denied: 'The token is missing, unknown, or of the other type.',
  notFound: 'There is no such crawler, account, job, result or delivery.',
  refused: 'A limit or a rate of the service is reached, or what is there forbids it.',
  unavailable: 'The service cannot be reached, or cannot answer now.',
  partly: 'Some of it was done: URLs were refused, or results are missing.',
  interrupted: 'It was interrupted; what was done stays done.',
};
