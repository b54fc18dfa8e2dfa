import { useSignal } from '@preact/signals';
import { CodeBlock } from './code-block.tsx';
import { Segments } from './segments.tsx';

/** One call in the two ways that clients make it. Tokens are the shell's `$TOKEN`. */
export interface CallExample {
  readonly rest: {
    readonly method: 'GET' | 'POST' | 'PUT';
    /** With `$TOKEN` where the token stands. */
    readonly path: string;
    readonly body?: object;
  };
  readonly grpc: { readonly method: string; readonly message: object };
}

/** The call that a form makes, to be pasted into a shell. */
export function CallPreview({ example }: { readonly example: CallExample }) {
  const kind = useSignal<'curl' | 'grpc'>('curl');
  return (
    <div class="stack tight">
      <div class="row spread">
        <h2 class="small-head">The same from a program</h2>
        <Segments
          label="Protocol"
          value={kind.value}
          options={[
            ['curl', 'curl'],
            ['grpc', 'gRPC'],
          ]}
          onPick={(picked) => {
            kind.value = picked;
          }}
        />
      </div>
      <CodeBlock
        label={kind.value === 'curl' ? 'REST' : 'gRPC, with grpcurl and reflection'}
        text={kind.value === 'curl' ? curlText(example) : grpcText(example)}
      />
    </div>
  );
}

function curlText({ rest }: CallExample): string {
  const url = `"${location.origin}${rest.path}"`;
  const lines = rest.method === 'GET' ? [`curl ${url}`] : [`curl -X ${rest.method}`, url];
  if (rest.body !== undefined) {
    lines.push(`-H 'content-type: application/json'`, `-d ${quoted(rest.body)}`);
  }
  return lines.join(' \\\n  ');
}

function grpcText({ grpc }: CallExample): string {
  const plain = location.protocol === 'http:' ? '-plaintext ' : '';
  return [
    `grpcurl ${plain}-H "authorization: Bearer $TOKEN"`,
    `-d ${quoted(grpc.message)}`,
    `${location.host} queuedcrawler.v1.${grpc.method}`,
  ].join(' \\\n  ');
}

/** JSON as one word of a POSIX shell, in lines that are short. */
function quoted(value: object): string {
  return `'${JSON.stringify(value, null, 2).replaceAll("'", `'\\''`)}'`;
}
