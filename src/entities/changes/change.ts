import type { Model } from '../../blueprints/model'
import type { MatchableEntity } from '../query/matches'
import { toSearchTerms } from '../search/tokenizer'
import { type EntityHeader, extractDocumentJson, parseHeader } from '../store/serializer'
import type { LoggedEntity, NumberedChange } from './change-log'

/** An entity at one point in time, parsed on first use. */
export class EntityVersion implements MatchableEntity {
  #system?: EntityHeader
  #keys?: MatchableEntity['keys']
  #doc?: MatchableEntity['doc']
  #searchTerms?: { model: Model; terms: Set<string> }

  constructor(private row: LoggedEntity) {}

  get shown() {
    return this.row.shown
  }
  get system() {
    this.#system ??= parseHeader(this.row.shown)
    return this.#system
  }
  get keys() {
    this.#keys ??= JSON.parse(this.row.keys) as MatchableEntity['keys']
    return this.#keys
  }
  get doc() {
    this.#doc ??= JSON.parse(extractDocumentJson(this.row.shown)) as MatchableEntity['doc']
    return this.#doc
  }

  /** Returns the search terms under a model, collected once for all subscribers. */
  searchTerms(model: Model): Set<string> {
    if (this.#searchTerms?.model !== model)
      this.#searchTerms = { model, terms: new Set(toSearchTerms(model, this.doc).split(' ')) }
    return this.#searchTerms.terms
  }
}

const MAX_CACHED_TEXTS = 20 // shapes for which the text of a change is cached

/** A change of an entity, shared by all subscribers. */
export class Change {
  readonly number: number
  readonly before?: EntityVersion
  readonly after?: EntityVersion
  #texts = new Map<string, string>()

  constructor({ number, before, after }: NumberedChange) {
    this.number = number
    if (before) this.before = new EntityVersion(before)
    if (after) this.after = new EntityVersion(after)
  }

  /** Returns the entity after the change in a shape, written once for all subscribers of this shape. */
  render(shape: string, write: (shown: string) => string): string {
    const cached = this.#texts.get(shape)
    if (cached !== undefined) return cached
    const text = write(this.after!.shown)
    if (this.#texts.size < MAX_CACHED_TEXTS) this.#texts.set(shape, text)
    return text
  }
}
