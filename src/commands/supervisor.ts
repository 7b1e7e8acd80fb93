import { config, environment } from '../config'
import { log, logError } from '../core/log'
import { OWN_COMMAND } from '../core/own-command'
import { SERVER_RUN } from '../core/process-id'
import { type Answer, PING_TOPIC, type ProcessMessage, type Question } from '../core/server-processes'
import { TurnArbiter, type TurnMessage } from '../storage/engines/sqlite/write-turns'
import { WRITE_TURN_TOPIC } from '../tenancy/databases'

/** The topic by which a process tells that it serves. */
export const READY_TOPIC = 'ready'

const FIRST_RESTART_DELAY_MS = 100
const MAX_RESTART_DELAY_MS = 10_000
const STABLE_AFTER_MS = 60_000 // a process that ran for so long is restarted without a growing delay
const KILL_AFTER_MS = 20_000 // longer than a process takes to stop

const PING_INTERVAL_MS = 5_000
const MAX_UNANSWERED_PINGS = 6 // a process that answers none for so long hangs, and keeps its connections

type ServerProcess = { child: Bun.Subprocess; startedAt: number; failures: number; unansweredPings?: number }

/** A server process ended before it could serve; it has told why. */
export class StartFailed extends Error {
  constructor(readonly exitCode: number) {
    super('A server process failed to start.')
  }
}

/**
 * Runs several processes that serve the same port. It starts those again that end, passes on what they ask each other,
 * and says which of them may write to a file.
 */
export class Supervisor {
  #processes = new Map<number, ServerProcess>()
  #arbiter = new TurnArbiter((to, message) => this.#send(to, WRITE_TURN_TOPIC, message))
  #isStopping = false

  constructor(
    private port: number,
    private count: number,
  ) {}

  /** Starts the processes, and returns their address once all of them serve. @throws StartFailed */
  async start(): Promise<string> {
    const numbers = Array.from({ length: this.count }, (_, index) => index + 1)
    const urls = await Promise.all(numbers.map((number) => this.#run(number, 0)))
    setInterval(() => this.#pingAll(), PING_INTERVAL_MS).unref()
    return urls[0]!
  }

  /** Ends the processes gracefully, and resolves when all have ended. */
  async stop() {
    this.#isStopping = true
    const children = [...this.#processes.values()].map(({ child }) => child)
    for (const child of children) child.kill('SIGTERM')
    const timer = setTimeout(
      () => {
        for (const child of children) child.kill('SIGKILL')
      },
      config.ATOLL_DRAIN * 1_000 + KILL_AFTER_MS,
    )
    await Promise.all(children.map(({ exited }) => exited))
    clearTimeout(timer)
  }

  /** Runs a process, and resolves with its address when it serves. */
  #run(number: number, failures: number): Promise<string> {
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    const child = Bun.spawn([...OWN_COMMAND, 'serve', '--process', String(number), '--run', SERVER_RUN], {
      env: { ...environment, ATOLL_PORT: String(this.port), ATOLL_WORKERS: String(this.count) },
      stdio: ['ignore', 'inherit', 'inherit'],
      ipc: ({ topic, content }: ProcessMessage) => {
        this.#receive(number, topic, content)
        if (topic === READY_TOPIC) resolve(content as string)
      },
      onExit: (_child, exitCode, signalCode) => {
        this.#arbiter.remove(number)
        if (this.#isStopping) return
        logError('SERVER_PROCESS_ENDED', { worker: number, exitCode, signal: signalCode })
        reject(new StartFailed(exitCode ?? 1))
        this.#restart(number)
      },
    })
    promise.catch(() => {}) // only the first start waits for it
    this.#processes.set(number, { child, startedAt: performance.now(), failures })
    return promise
  }

  /** Asks each process for a sign of life, and ends those that hang, so that others take their place. */
  #pingAll() {
    if (this.#isStopping) return
    for (const [number, serverProcess] of this.#processes) {
      if (serverProcess.unansweredPings === undefined) continue // it is still starting
      if (serverProcess.unansweredPings++ >= MAX_UNANSWERED_PINGS) {
        logError('SERVER_PROCESS_HANGS', { worker: number })
        serverProcess.child.kill('SIGKILL')
      } else this.#send(number, PING_TOPIC, undefined)
    }
  }

  #restart(number: number) {
    const { startedAt, failures } = this.#processes.get(number)!
    const isStable = performance.now() - startedAt > STABLE_AFTER_MS
    const delay = isStable ? 0 : Math.min(MAX_RESTART_DELAY_MS, FIRST_RESTART_DELAY_MS * 2 ** failures)
    setTimeout(() => {
      if (this.#isStopping) return
      log.info({ event: 'server-process-restarted', worker: number })
      void this.#run(number, isStable ? 0 : failures + 1)
    }, delay)
  }

  #receive(from: number, topic: string, content: unknown) {
    if (topic === PING_TOPIC || topic === READY_TOPIC) this.#processes.get(from)!.unansweredPings = 0
    if (topic === WRITE_TURN_TOPIC) this.#arbiter.receive(from, content as TurnMessage)
    else if (topic === 'answer') this.#send((content as Answer).to, topic, content)
    else if (topic === 'question')
      for (const number of this.#processes.keys())
        if (number !== (content as Question).from) this.#send(number, topic, content)
  }

  #send(to: number, topic: string, content: unknown) {
    try {
      this.#processes.get(to)?.child.send({ topic, content } satisfies ProcessMessage)
    } catch {
      // It has ended, and is started again.
    }
  }
}
