import type { PublicCtx } from '../../accounts/context'
import { reauthorize } from '../../accounts/guard'
import { now } from '../../core/clock'
import { logError } from '../../core/log'
import { Problem } from '../../core/problem'
import { restoreIdleTimeout } from '../../tenancy/client-connection'
import { withoutPrivilege } from '../request'
import type { Feed, FeedConsumer } from './feed'
import { createSeal, formatChange, formatEvent, getView, type StreamQuery, type View } from './view'

const MAX_CHUNK_CHARACTERS = 64 << 10 // characters after which the listener has to take them before there are more
const HEARTBEAT_MS = 15_000 // ms; whoever stands between us and the listener may cut a connection that is quiet for longer
const STALL_TIMEOUT_MS = 30_000 // ms that a listener may take to take them
const RECHECK_MS = 2_000 // ms after which it is asked again whether the listener may still listen

type StreamController = Pick<ReadableStreamDefaultController<Uint8Array>, 'close'> & {
  enqueue(chunk: Uint8Array): void
}

/** One who listens: where they are, what they see, and the stream to them, which is made only as fast as it is taken. */
export class SseSubscriber implements FeedConsumer {
  readonly stream: ReadableStream<Uint8Array>
  #pendingText: string
  #sentAt = now()
  #checkedAt = performance.now()
  /** Whether everything that was given has been taken. */
  #isDrained = false
  #isClosed = false
  #wakeUp = () => {}
  #release: () => void
  #seal: string
  #controller?: StreamController

  /** Tells what happens after a number, and before that what is `due`; ids end with the `seal`, `free` is called at the end. */
  constructor(
    private subscription: { ctx: PublicCtx; request: Request; question: StreamQuery },
    private feed: Feed,
    private view: View,
    private lastNumber: number,
    { seal, due, free }: { seal: string; due: string; free: () => void },
  ) {
    this.#seal = seal
    this.#pendingText = due
    const left = feed.join(this)
    this.#release = () => {
      left()
      free()
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
    // Who takes nothing would hold its place forever; by the last id it goes on where it was.
    if (!this.#isDrained && now() - this.#sentAt > STALL_TIMEOUT_MS) this.end()
    else if (performance.now() - this.#checkedAt > RECHECK_MS || now() - this.#sentAt > HEARTBEAT_MS) this.wake()
  }

  end() {
    if (!this.#finish()) return
    restoreIdleTimeout(this.subscription.request)
    try {
      this.#controller?.close()
    } catch {
      // It is closed already.
    }
  }

  /** Frees everything; false when that was done before. */
  #finish(): boolean {
    if (this.#isClosed) return false
    this.#isClosed = true
    this.#release()
    this.#wakeUp()
    return true
  }

  async #push(controller: StreamController) {
    this.#isDrained = true
    while (!this.#isClosed) {
      const woken = new Promise<void>((resolve) => {
        this.#wakeUp = resolve
      })
      const text = await this.#readEvents().catch((error) => this.#handleError(error))
      if (this.#isClosed) return
      if (text) {
        this.#isDrained = false
        this.#sentAt = now()
        return controller.enqueue(Buffer.from(text))
      }
      await woken
    }
  }

  /** Some more events; nothing when there are none now. */
  async #readEvents(): Promise<string> {
    let text = this.#pendingText
    this.#pendingText = ''
    for (let isEmpty = !text; isEmpty; ) {
      const page = await this.feed.readAfter(this.lastNumber)
      if (!page) return this.#stop()
      const { since, last, upto, changes } = page
      // Looked at last, so that nobody is told what they may not see any more.
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
    // An id without data is no event, but the listener comes again with it.
    return text || (now() - this.#sentAt > HEARTBEAT_MS ? `:\nid: ${this.lastNumber}.${this.#seal}\n\n` : '')
  }

  /** What the listener may see by now. @throws as if they came now */
  async #refreshView(): Promise<View> {
    const { ctx, request, question: streamQuery } = this.subscription
    const freshCtx = await reauthorize(request, 'entities')
    this.#checkedAt = performance.now()
    // The tenant is another one, or served from elsewhere.
    if (freshCtx.db !== ctx.db) this.end()
    return getView(withoutPrivilege(freshCtx, request), streamQuery, this.view)
  }

  #stop() {
    this.end()
    return ''
  }

  /** Where the database has no time it is asked again, and nothing told meanwhile; who may not listen any more is left. */
  #handleError(error: unknown): string {
    const status = error instanceof Problem ? error.status : 500
    if (status === 503) return ''
    if (status >= 500) logError('LISTENER_FAILED', { cause: error })
    return this.#stop()
  }
}

const RESET_DATA = JSON.stringify({ message: 'Your view is stale. Reload the list.' })

/** What is told instead of changes that can't be told. */
export const formatReset = (number: number, seal: string) => formatEvent('reset', number, seal, RESET_DATA)
