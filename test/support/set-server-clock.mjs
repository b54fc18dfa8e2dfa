import { readFileSync } from 'node:fs';
import { Db } from 'mongodb';

// Loaded into a process of the service: the server's clock seems to be wrong by as many milliseconds
// as the file SERVER_CLOCK says.
const { command } = Db.prototype;
Db.prototype.command = async function shifted(asked, ...options) {
  const reply = await command.call(this, asked, ...options);
  if (asked.hello !== 1) return reply;
  const byMs = Number(readFileSync(process.env.SERVER_CLOCK, 'utf8'));
  return { ...reply, localTime: new Date(reply.localTime.getTime() + byMs) };
};
