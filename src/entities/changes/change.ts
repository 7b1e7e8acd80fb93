import type { Judged } from '../meets'
import { docOf, type System, systemOf } from '../wire'
import type { Kept, LoggedRow } from './log'

/** An entity as it was at one time, parsed when it is first judged. */
export class Version implements Judged {
  #system?: System
  #keys?: Judged['keys']
  #doc?: Judged['doc']

  constructor(private kept: Kept) {}

  get shown() {
    return this.kept.shown
  }
  get system() {
    this.#system ??= systemOf(this.kept.shown)
    return this.#system
  }
  get keys() {
    this.#keys ??= JSON.parse(this.kept.keys) as Judged['keys']
    return this.#keys
  }
  get doc() {
    this.#doc ??= JSON.parse(docOf(this.kept.shown)) as Judged['doc']
    return this.#doc
  }
}

const FORMS = 20 // in which the text of a change is remembered

/** A change of an entity, shared by all who hear of it. */
export class Change {
  readonly number: number
  readonly before?: Version
  readonly after?: Version
  #texts = new Map<string, string>()

  constructor({ number, before, after }: LoggedRow) {
    this.number = number
    if (before) this.before = new Version(before)
    if (after) this.after = new Version(after)
  }

  /** The entity afterwards in a form, written once for all who want that. */
  text(form: string, write: (shown: string) => string): string {
    const known = this.#texts.get(form)
    if (known !== undefined) return known
    const text = write(this.after!.shown)
    if (this.#texts.size < FORMS) this.#texts.set(form, text)
    return text
  }
}
