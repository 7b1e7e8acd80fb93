import { type OpenCtx, readmit } from '../../accounts/guard'
import { now } from '../../core/clock'
import { report } from '../../core/log'
import { Problem } from '../../core/problem'
import { waitsNoLonger } from '../../tenancy/caller'
import { narrowed } from '../entities'
import type { Ear, Feed } from './feed'
import { eventOf, type Question, sealOf, told, type View, viewOf } from './view'

const CHUNK = 64 << 10 // characters after which the listener has to take them before there are more
const QUIET = 15_000 // ms; whoever stands between us and the listener may cut a connection that is quiet for longer
const STALLED = 30_000 // ms that a listener may take to take them
const CHECK = 2_000 // ms after which it is asked again whether the listener may still listen

type Controller = Pick<ReadableStreamDefaultController<Uint8Array>, 'close'> & { enqueue(chunk: Uint8Array): void }

/** One who listens: where they are, what they see, and the stream to them, which is made only as fast as it is taken. */
export class Listener implements Ear {
  readonly stream: ReadableStream<Uint8Array>
  #due: string
  #given = now()
  #checked = performance.now()
  /** Whether everything that was given has been taken. */
  #taking = false
  #over = false
  #awake = () => {}
  #leave: () => void
  #seal: string
  #controller?: Controller

  /** Tells what happens after a number, and before that what is `due`; ids end with the `seal`, `free` is called at the end. */
  constructor(
    private asked: { ctx: OpenCtx; request: Request; question: Question },
    private feed: Feed,
    private view: View,
    private number: number,
    { seal, due, free }: { seal: string; due: string; free: () => void },
  ) {
    this.#seal = seal
    this.#due = due
    const left = feed.join(this)
    this.#leave = () => {
      left()
      free()
    }
    this.stream = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller
        },
        pull: (controller) => this.#give(controller),
        cancel: () => void this.#finish(),
      },
      { highWaterMark: 0 },
    )
  }

  wake() {
    this.#awake()
  }

  tick() {
    // Who takes nothing would hold its place forever; by the last id it goes on where it was.
    if (!this.#taking && now() - this.#given > STALLED) this.end()
    else if (performance.now() - this.#checked > CHECK || now() - this.#given > QUIET) this.wake()
  }

  end() {
    if (!this.#finish()) return
    waitsNoLonger(this.asked.request)
    try {
      this.#controller?.close()
    } catch {
      // It is closed already.
    }
  }

  /** Frees everything; false when that was done before. */
  #finish(): boolean {
    if (this.#over) return false
    this.#over = true
    this.#leave()
    this.#awake()
    return true
  }

  async #give(controller: Controller) {
    this.#taking = true
    while (!this.#over) {
      const woken = new Promise<void>((resolve) => {
        this.#awake = resolve
      })
      const text = await this.#next().catch((error) => this.#refused(error))
      if (this.#over) return
      if (text) {
        this.#taking = false
        this.#given = now()
        return controller.enqueue(Buffer.from(text))
      }
      await woken
    }
  }

  /** Some more events; nothing when there are none now. */
  async #next(): Promise<string> {
    let text = this.#due
    this.#due = ''
    for (let left = !text; left; ) {
      const page = await this.feed.after(this.number)
      if (!page) return this.#gone()
      const { since, last, upto, changes } = page
      // Looked at last, so that nobody is told what they may not see any more.
      const before = this.view
      this.view = await this.#look()
      if (this.view.model._id !== before.model._id) return this.#gone()
      if (this.view.print !== before.print || since > this.number) {
        this.number = Math.max(last, since)
        this.#seal = await sealOf(this.asked.ctx, this.view, this.number)
        return text + reset(this.number, this.#seal)
      }
      for (const change of changes) {
        text += told(this.view, this.#seal, change)
        this.number = change.number
        if (text.length >= CHUNK) return text
      }
      this.number = Math.max(this.number, upto)
      left = !text && upto < last
    }
    // An id without data is no event, but the listener comes again with it.
    return text || (now() - this.#given > QUIET ? `:\nid: ${this.number}.${this.#seal}\n\n` : '')
  }

  /** What the listener may see by now. @throws as if they came now */
  async #look(): Promise<View> {
    const { ctx, request, question } = this.asked
    const again = await readmit(request, 'entities')
    this.#checked = performance.now()
    // The tenant is another one, or served from elsewhere.
    if (again.db !== ctx.db) this.end()
    return viewOf(narrowed(again, request), question, this.view)
  }

  #gone() {
    this.end()
    return ''
  }

  /** Where the database has no time it is asked again, and nothing told meanwhile; who may not listen any more is left. */
  #refused(error: unknown): string {
    const status = error instanceof Problem ? error.status : 500
    if (status === 503) return ''
    if (status >= 500) report('LISTENER_FAILED', { cause: error })
    return this.#gone()
  }
}

const MISSED = JSON.stringify({ message: 'Read the list again: what you were told before may not be right any more.' })

/** What is told instead of changes that can't be told. */
export const reset = (number: number, seal: string) => eventOf('reset', number, seal, MISSED)
