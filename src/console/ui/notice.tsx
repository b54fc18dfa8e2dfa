import type { ComponentChildren } from 'preact';
import type { Fault } from '../api/fault.ts';
import { Button } from './button.tsx';

/** Something to know about what is below. */
export function Notice(props: {
  readonly kind?: 'ok' | 'warn' | 'bad';
  readonly title: string;
  readonly children?: ComponentChildren;
}) {
  return (
    <div class={`notice ${props.kind ?? ''}`} role={props.kind === 'bad' ? 'alert' : 'status'}>
      <strong>{props.title}</strong>
      {props.children}
    </div>
  );
}

/** Why something failed and what to do; nothing while nothing has failed. */
export function FaultNotice(props: {
  readonly fault: Fault | undefined;
  /** Tries again; offered where it may help. */
  readonly retry?: () => void;
}) {
  const { fault, retry } = props;
  if (fault === undefined) return null;
  return (
    <Notice kind="bad" title={fault.text}>
      {fault.advice !== '' && <p>{fault.advice}</p>}
      {retry !== undefined && (
        <p>
          <Button small onClick={retry}>
            Try again
          </Button>
        </p>
      )}
    </Notice>
  );
}

/** In place of a list, or of a whole page, that has nothing to show, with the next step. */
export function Empty(props: {
  readonly title: string;
  readonly isPage?: boolean;
  readonly children?: ComponentChildren;
}) {
  const Head = props.isPage === true ? 'h1' : 'h2';
  return (
    <div class="empty">
      <Head class="small-head">{props.title}</Head>
      {props.children}
    </div>
  );
}

/** In place of what has not been read yet. */
export function Loading(props: Parameters<typeof FaultNotice>[0]) {
  if (props.fault !== undefined) return <FaultNotice {...props} />;
  return (
    <p class="empty muted" role="status">
      Loading…
    </p>
  );
}
