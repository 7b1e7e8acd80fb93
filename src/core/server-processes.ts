/** A message between a server process and the supervisor that started it. The topic says who receives it. */
export type ProcessMessage = { topic: string; content: unknown }

/** A question to all other server processes, or an answer to one; the supervisor passes them on. */
export type Question = { id: string; topic: string; from: number }
export type Answer = { id: string; to: number; value: unknown }

/** The topic by which the supervisor asks for a sign of life, and gets it. */
export const PING_TOPIC = 'ping'

const ANSWER_TIMEOUT_MS = 1_000

let ownNumber: number | undefined
let siblingCount = 0
let serverRun: string | undefined
const receivers = new Map<string, (content: never) => void>()
const answers = new Map<string, () => unknown>()
const openQuestions = new Map<string, (value: unknown) => void>()

/**
 * Makes this process one of several that serve together in a run of the server, with a number from 1. `onOrphaned` is
 * called when the supervisor is gone.
 */
export function joinServerProcesses(number: number, count: number, run: string | undefined, onOrphaned: () => void) {
  ownNumber = number
  serverRun = run
  siblingCount = count - 1
  receiveFromSupervisor(PING_TOPIC, () => sendToSupervisor(PING_TOPIC, undefined))
  receiveFromSupervisor('question', answerQuestion)
  receiveFromSupervisor('answer', ({ id, value }: Answer) => openQuestions.get(id)?.(value))
  process.on('message', ({ topic, content }: ProcessMessage) => receivers.get(topic)?.(content as never))
  process.once('disconnect', onOrphaned)
}

/** Returns the number of this process among those that serve together; undefined for a process that serves alone. */
export const getProcessNumber = (): number | undefined => ownNumber

/** Returns the run of the server that this process was started for; undefined for a process that serves alone. */
export const getServerRun = (): string | undefined => serverRun

/** Tells whether this process does what only one of the server processes should do. */
export const isFirstProcess = (): boolean => (ownNumber ?? 1) === 1

/** Sends a message to the supervisor. Without one, nobody receives it. */
export function sendToSupervisor(topic: string, content: unknown) {
  if (process.connected) process.send?.({ topic, content } satisfies ProcessMessage)
}

/** Sets what receives the messages of a topic. */
export function receiveFromSupervisor<Content>(topic: string, receive: (content: Content) => void) {
  receivers.set(topic, receive)
}

/** Sets what this process answers when another one asks. */
export function answerProcesses(topic: string, answer: () => unknown) {
  answers.set(topic, answer)
}

/** Returns the answers of the other server processes, without those that do not answer within a second. */
export async function askOtherProcesses<Value>(topic: string): Promise<Value[]> {
  if (!siblingCount) return []
  const id = crypto.randomUUID()
  const received: Value[] = []
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ANSWER_TIMEOUT_MS).unref()
  openQuestions.set(id, (value) => {
    received.push(value as Value)
    if (received.length === siblingCount) resolve()
  })
  sendToSupervisor('question', { id, topic, from: ownNumber! } satisfies Question)
  await promise
  clearTimeout(timer)
  openQuestions.delete(id)
  return received
}

async function answerQuestion({ id, topic, from }: Question) {
  const value = await answers.get(topic)?.()
  sendToSupervisor('answer', { id, to: from, value } satisfies Answer)
}
