import type { Database, ProcessReport } from '../domain/process-report.ts';

/** The processes of the service, as each last reported itself, and the database itself. */
export interface ProcessStore {
  /** Replaces the process's report. Reports that are not renewed are forgotten within the hour. */
  report(report: ProcessReport): Promise<void>;
  /** Removes a report. False when it does not exist. */
  remove(processId: string): Promise<boolean>;
  /** Reports since `since`, by `processId`. */
  list(since: Date): Promise<ProcessReport[]>;
  /** What database answers; it is asked each time. */
  database(): Promise<Database>;
  /** The secret that all processes of this database share: the first `fresh` that was offered. */
  secret(fresh: string): Promise<string>;
}
