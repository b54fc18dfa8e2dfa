import { render } from 'preact';
import { followSession } from './api/session.ts';
import { App } from './app.tsx';
import { replaceUnknownLanguage } from './format/language.ts';
import './shell/theme.ts';

const root = document.getElementById('console');
replaceUnknownLanguage();
followSession();
if (root !== null) render(<App />, root);
