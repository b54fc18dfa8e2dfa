import { useSignal } from '@preact/signals';
import { Button } from './button.tsx';
import { Icon } from './icon.tsx';

/** Text as it is, with a button that copies it. */
export function CodeBlock(props: {
  readonly text: string;
  readonly label: string;
  readonly wrap?: boolean;
}) {
  const { text, label, wrap = false } = props;
  return (
    <div class="stack tight">
      <div class="row spread">
        <span class="muted small">{label}</span>
        <CopyButton text={text} />
      </div>
      {/* A long text scrolls, which the keyboard has to be able to do as well. */}
      <pre class={`code${wrap ? ' wrap' : ''}`} tabIndex={0} role="region" aria-label={label}>
        {text}
      </pre>
    </div>
  );
}

/** Copies a text, and says that it has. */
function CopyButton({ text }: { readonly text: string }) {
  const copied = useSignal(false);
  return (
    <Button
      kind="plain"
      small
      onClick={() => {
        void navigator.clipboard.writeText(text).then(() => {
          copied.value = true;
          setTimeout(() => {
            copied.value = false;
          }, 2_000);
        });
      }}
    >
      <Icon name="copy" size={14} /> {copied.value ? 'Copied' : 'Copy'}
    </Button>
  );
}
