/** What the service made of a crawl: its `cb_status`, and the reason where it failed. */
export function StatusBadge(props: { readonly cbStatus: number; readonly failure?: string }) {
  const { cbStatus, failure = '' } = props;
  const isGood = cbStatus === 200 || cbStatus === 201;
  return (
    <span class={`badge ${isGood ? 'ok' : 'bad'}`}>
      {cbStatus}
      {failure !== '' && ` ${failure.replaceAll('_', ' ')}`}
    </span>
  );
}
