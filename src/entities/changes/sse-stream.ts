import type { PublicCtx } from '../../accounts/context'
import { reauthorize } from '../../accounts/guard'
import { now } from '../../core/clock'
import { logError } from '../../core/log'
import { Problem } from '../../core/problem'
import { restoreIdleTimeout } from '../../tenancy/client-connection'
import { withoutPrivilege } from '../request'
import type { Feed, FeedConsumer } from './feed'
import { createSeal, formatChange, formatEvent, getView, type StreamQuery, type View } from './view'

const MAX_CHUNK_CHARACTERS = 64 << 10 // characters of a chunk, which the client has to read before it gets more
const HEARTBEAT_MS = 15_000 // ms; proxies may cut a connection that is quiet for longer
const STALL_TIMEOUT_MS = 30_000 // ms that a client may take to read a chunk
const RECHECK_MS = 2_000 // ms between two checks whether the subscriber may still listen

type StreamController = Pick<ReadableStreamDefaultController<Uint8Array>, 'close'> & {
  enqueue(chunk: Uint8Array): void
}

/**
 * A subscriber: their position, their view, and their stream, which is produced only as fast as the client reads it.
 */
export class SseSubscriber implements FeedConsumer {
  readonly stream: ReadableStream<Uint8Array>
  #pendingText: string
  #sentAt = now()
  #checkedAt = performance.now()
  /** Whether the client has read everything that was sent. */
  #isDrained = false
  #isClosed = false
  #wakeUp = () => {}
  #release: () => void
  #seal: string
  #controller?: StreamController

  /**
   * Sends the text `initialText` first, then the changes after number `lastNumber`. Event ids end with the `seal`. Calls
   * `release` when the stream ends.
   */
  constructor(
    private subscription: { ctx: PublicCtx; request: Request; streamQuery: StreamQuery },
    private feed: Feed,
    private view: View,
    private lastNumber: number,
    { seal, initialText, release }: { seal: string; initialText: string; release: () => void },
  ) {
    this.#seal = seal
    this.#pendingText = initialText
    const leave = feed.join(this)
    this.#release = () => {
      leave()
      release()
    }
    this.stream = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller
        },
        pull: (controller) => this.#push(controller),
        cancel: () => void this.#finish(),
      },
      { highWaterMark: 0 },
    )
  }

  wake() {
    this.#wakeUp()
  }

  tick() {
    // A client that reads nothing would hold its place forever; after reconnecting, it resumes from its last id.
    if (!this.#isDrained && this.#msSinceSent() > STALL_TIMEOUT_MS) this.end()
    else if (performance.now() - this.#checkedAt > RECHECK_MS || this.#msSinceSent() > HEARTBEAT_MS) this.wake()
  }

  /** Returns the ms since anything was sent. A clock that was set back by much counts as a long silence. */
  #msSinceSent() {
    return Math.abs(now() - this.#sentAt)
  }

  end() {
    if (!this.#finish()) return
    restoreIdleTimeout(this.subscription.request)
    try {
      this.#controller?.close()
    } catch {
      // The stream is already closed.
    }
  }

  /** Releases everything; returns false when that was done before. */
  #finish(): boolean {
    if (this.#isClosed) return false
    this.#isClosed = true
    this.#release()
    this.#wakeUp()
    return true
  }

  async #push(controller: StreamController) {
    this.#isDrained = true
    // The feed wakes its subscribers in turns. One that is behind reads on as soon as its client does, and takes its own.
    for (let isBehind = this.feed.hasNewsAfter(this.lastNumber); !this.#isClosed; isBehind = false) {
      const woken = new Promise<void>((resolve) => {
        this.#wakeUp = resolve
      })
      const read = () => this.#readEvents().catch((error) => this.#handleError(error))
      const text = await (isBehind ? this.feed.runInTurn(read) : read())
      if (this.#isClosed) return
      if (text) {
        this.#isDrained = false
        this.#sentAt = now()
        return controller.enqueue(Buffer.from(text))
      }
      await woken
    }
  }

  /** Returns the text of the next events; empty when there are none. */
  async #readEvents(): Promise<string> {
    if (this.#hasNothingToDo()) return ''
    let text = this.#pendingText
    this.#pendingText = ''
    for (let isEmpty = !text; isEmpty; ) {
      const page = await this.feed.readAfter(this.lastNumber)
      if (!page) return this.#stop()
      const { since, last, upto, changes } = page
      // Refreshed after the read, so that subscribers never receive what they may no longer see.
      const before = this.view
      this.view = await this.#refreshView()
      if (this.view.model._id !== before.model._id) return this.#stop()
      if (this.view.fingerprint !== before.fingerprint || since > this.lastNumber) {
        this.lastNumber = Math.max(last, since)
        this.#seal = await createSeal(this.subscription.ctx, this.view, this.lastNumber)
        return text + formatReset(this.lastNumber, this.#seal)
      }
      for (const change of changes) {
        text += formatChange(this.view, this.#seal, change)
        this.lastNumber = change.number
        if (text.length >= MAX_CHUNK_CHARACTERS) return text
      }
      this.lastNumber = Math.max(this.lastNumber, upto)
      isEmpty = !text && upto < last
    }
    // An id without data is not an event, but the client reconnects with it.
    return text || (this.#msSinceSent() > HEARTBEAT_MS ? `:\nid: ${this.lastNumber}.${this.#seal}\n\n` : '')
  }

  /** Most reads follow a client that has just read everything. */
  #hasNothingToDo = () =>
    !this.#pendingText &&
    !this.feed.hasNewsAfter(this.lastNumber) &&
    performance.now() - this.#checkedAt <= RECHECK_MS &&
    this.#msSinceSent() <= HEARTBEAT_MS

  /** Returns what the subscriber may see now. Throws what a new subscription would throw. */
  async #refreshView(): Promise<View> {
    const { ctx, request, streamQuery } = this.subscription
    const freshCtx = await reauthorize(request, 'entities')
    this.#checkedAt = performance.now()
    // The tenant was replaced, or its database moved.
    if (freshCtx.db !== ctx.db) this.end()
    return getView(withoutPrivilege(freshCtx, request), streamQuery, this.view)
  }

  #stop() {
    this.end()
    return ''
  }

  /**
   * Waits for the next attempt when the database is busy (503). Any other error, such as lost access, ends the stream.
   */
  #handleError(error: unknown): string {
    const status = error instanceof Problem ? error.status : 500
    if (status === 503) return ''
    if (status >= 500) logError('LISTENER_FAILED', { cause: error })
    return this.#stop()
  }
}

const RESET_DATA = JSON.stringify({ message: 'Your view is stale. Reload the list.' })

/** Returns the event that replaces changes that cannot be sent. */
export const formatReset = (number: number, seal: string) => formatEvent('reset', number, seal, RESET_DATA)
