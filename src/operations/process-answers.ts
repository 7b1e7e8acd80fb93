import { readLogTail } from '../core/log-tail'
import { answerProcesses } from '../core/server-processes'
import { getProcessState } from './installation-health'
import { PROCESS_TOPICS } from './process-topics'

/** Answers the other server processes, where somebody asks one of them about the whole server. */
export function answerOtherProcesses() {
  // The library is loaded only where somebody reads metrics.
  answerProcesses(PROCESS_TOPICS.metrics, async () => (await import('./metrics/exposition')).collectMetrics())
  answerProcesses(PROCESS_TOPICS.log, readLogTail)
  answerProcesses(PROCESS_TOPICS.state, getProcessState)
}
