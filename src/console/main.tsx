import { render } from 'preact';
import { followSession } from './api/session.ts';
import { App } from './app.tsx';
import './shell/theme.ts';

const root = document.getElementById('console');
followSession();
if (root !== null) render(<App />, root);
