import type { ComponentChildren } from 'preact';
import { Button } from './button.tsx';
import { CodeBlock } from './code-block.tsx';
import { Dialog } from './dialog.tsx';

/** Secrets that are not shown again: nothing but its button closes the dialog. */
export function ShownOnce(props: {
  readonly title: string;
  /** Name and text of each. */
  readonly secrets: readonly (readonly [label: string, text: string])[];
  readonly onSaved: () => void;
  /** What they are for. */
  readonly children: ComponentChildren;
}) {
  const { secrets } = props;
  return (
    <Dialog title={props.title} insistent onClose={props.onSaved}>
      {props.children}
      {secrets.map(([label, text]) => (
        <CodeBlock key={label} label={label} text={text} wrap />
      ))}
      <div class="row end">
        <Button kind="primary" onClick={props.onSaved}>
          I have saved {secrets.length === 1 ? 'it' : 'them'}
        </Button>
      </div>
    </Dialog>
  );
}
