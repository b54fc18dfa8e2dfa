/** The keys of a command, each as a key. */
export function Keys({ keys }: { readonly keys: string | undefined }) {
  if (keys === undefined) return null;
  return (
    <span class="row tight wide-only">
      {keys.split(' ').map((key) => (
        <kbd class="kbd" key={key}>
          {key}
        </kbd>
      ))}
    </span>
  );
}
