import type { ComponentChildren } from 'preact';
import { useRef } from 'preact/hooks';
import type { Fault } from '../api/fault.ts';
import { Button } from './button.tsx';
import { Floating } from './floating.tsx';

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

/**
 * A notice that comes and goes by itself, and moves nothing when it does. One that was there at first
 * stays in its place, and says when it is over; one that comes later floats.
 */
export function LiveNotice(props: Parameters<typeof Notice>[0] & { readonly isOn: boolean }) {
  const { isOn, ...notice } = props;
  const wasOn = useRef(isOn).current;
  const last = useRef(notice);
  if (isOn) last.current = notice;
  if (wasOn && isOn) return <Notice {...notice} />;
  if (wasOn) return <Notice {...last.current} kind="ok" title={`${last.current.title}: over`} />;
  if (!isOn) return null;
  return (
    <Floating id={notice.title}>
      <Notice {...notice} />
    </Floating>
  );
}

/** The properties of {@link FaultNotice}. */
interface FaultProps {
  readonly fault: Fault | undefined;
  /** Tries again; offered where it may help. */
  readonly retry?: () => void;
}

/** Why something failed and what to do; nothing while nothing has failed. It floats. */
export function FaultNotice(props: FaultProps) {
  if (props.fault === undefined) return null;
  return (
    <Floating id={props.fault.text}>
      <FaultText {...props} />
    </Floating>
  );
}

function FaultText({ fault, retry }: FaultProps) {
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
export function Loading(props: FaultProps) {
  if (props.fault !== undefined) return <FaultText {...props} />;
  return (
    <p class="empty muted" role="status">
      Loading…
    </p>
  );
}
