import { render } from 'preact';
import { App } from './app.tsx';
import './shell/theme.ts';

const root = document.getElementById('console');
if (root !== null) render(<App />, root);
