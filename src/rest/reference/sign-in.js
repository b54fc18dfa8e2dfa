// The session that this page shares with the console.

import { element } from './schema.js';

const PATH = '/console/session';

/** Stands for the token in paths: the service puts that of the session there. */
export const PLACEHOLDER = '-';

const form = document.querySelector('#sign-in');
const token = document.querySelector('#token');
const signedIn = document.querySelector('#signed-in');
let select;

/** The token that calls are made with: what was typed, or the placeholder of the session's. */
export function givenToken() {
  return select === undefined ? token.value : PLACEHOLDER;
}

/** Which token of the session calls are made with; undefined without a session. */
export function sessionToken() {
  return select?.value;
}

/** Shows who is signed in. `changed` is called whenever calls have another token. */
export async function followSession(changed) {
  new BroadcastChannel('console-session').addEventListener('message', () => void read());
  token.addEventListener('input', changed);
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    void signIn();
  });

  async function read() {
    const reply = await fetch(PATH);
    // A service without a console has no sessions.
    if (reply.ok) show(await reply.json());
  }

  async function signIn() {
    const reply = await fetch(PATH, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ token: token.value.trim() }),
    });
    const answer = await reply.json();
    token.setCustomValidity(reply.ok ? '' : answer.error);
    token.reportValidity();
    token.addEventListener('input', () => token.setCustomValidity(''), { once: true });
    if (!reply.ok) return;
    new BroadcastChannel('console-session').postMessage('');
    token.value = '';
    show(answer);
  }

  function show({ account, tokens }) {
    form.hidden = tokens.length > 0;
    signedIn.hidden = !form.hidden;
    select = undefined;
    if (tokens.length > 0) {
      select = element(
        'select',
        { ariaLabel: 'Token of the session' },
        ...tokens.map((kind) => new Option(`${kind} token`, kind)),
      );
      select.addEventListener('change', changed);
      signedIn.replaceChildren(account === '' ? 'operator' : account, ' ', select);
    }
    changed();
  }

  await read();
}
