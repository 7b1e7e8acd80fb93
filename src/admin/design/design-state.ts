import { createContext, use, useCallback, useEffect, useMemo, useState } from 'react'
import { keepDraft, readDraft, removeDraft } from '../api/drafts'
import type { ProblemDetail } from '../api/problem'
import type { Blueprint } from '../api/schema'
import { type DesignDraft, type DraftField, toChange, toDraft } from './design-draft'
import type { SavedBlueprint } from './design-queries'

/** The blueprint that is changed, what it becomes, and what the server refused of it. */
export type Design = {
  before: Blueprint
  draft: DesignDraft
  update(change: (draft: DesignDraft) => DesignDraft): void
  updateFields(change: (fields: DraftField[]) => DraftField[]): void
  /** The paths name fields by their ids, so that they stay right when fields move. */
  flaws: ProblemDetail[]
}

/** Gives the views of a design what they change. */
export const DesignContext = createContext<Design | undefined>(undefined)

/** Returns the design that the view belongs to. */
export const useDesign = (): Design => use(DesignContext)!

type DesignEdit = SavedBlueprint & { draft: DesignDraft }

const startEdit = (saved: SavedBlueprint): DesignEdit => ({
  ...saved,
  draft: toDraft(
    saved.blueprint,
    saved.blueprint.fields.map(({ key }) => key),
  ),
})

/** Returns the edit that this browser keeps, unless another version of this page wrote it in another shape. */
function readEdit(draftKey: string): DesignEdit | undefined {
  const edit = readDraft<DesignEdit>(draftKey)
  return Array.isArray(edit?.draft?.fields) && Array.isArray(edit.blueprint?.fields) ? edit : undefined
}

/** Returns the flaws of a refused change, with the ids of fields instead of their positions. */
export const locateFlaws = (details: ProblemDetail[], { fields }: DesignDraft): ProblemDetail[] =>
  details.map(({ path = '', message }) => ({
    message,
    path: path
      .replace(/^\/fields\/(\d+)/, (_, index) => `/fields/${fields[Number(index)]?.id}`)
      .replace(/^\/computed\/([^/]+)/, (_, key) => `/fields/${fields.find((field) => field.key === key)?.id}/formula`),
  }))

/** Returns a draft that was changed while it was saved: the fields that were sent have the saved keys as their ids. */
const followSaved = (draft: DesignDraft, sent: DesignDraft): DesignDraft => ({
  ...draft,
  fields: draft.fields.map((field) => ({
    ...field,
    id: sent.fields.find(({ id }) => id === field.id)?.key ?? field.id,
  })),
})

/** The changes of a blueprint that are not saved yet. They are kept in the browser. */
export function useDesignState(saved: SavedBlueprint) {
  const draftKey = `design:${saved.blueprint.key}`
  const [edit, setEdit] = useState(() => readEdit(draftKey) ?? startEdit(saved))
  const [flaws, setFlaws] = useState<ProblemDetail[]>([])
  const isChanged = useMemo(() => Object.keys(toChange(edit.blueprint, edit.draft)).length > 0, [edit])
  useEffect(() => {
    if (isChanged) keepDraft(draftKey, edit)
    else removeDraft(draftKey)
  }, [draftKey, edit, isChanged])
  // Without changes of one's own, the design follows what others save.
  useEffect(() => {
    if (!isChanged && saved.etag !== edit.etag) setEdit(startEdit(saved))
  }, [saved, edit.etag, isChanged])
  const update = useCallback(
    (next: (draft: DesignDraft) => DesignDraft) => setEdit((now) => ({ ...now, draft: next(now.draft) })),
    [],
  )
  const updateFields = useCallback(
    (next: (fields: DraftField[]) => DraftField[]) => update((draft) => ({ ...draft, fields: next(draft.fields) })),
    [update],
  )
  const reset = useCallback((to: SavedBlueprint) => {
    setEdit(startEdit(to))
    setFlaws([])
  }, [])
  const adoptSaved = useCallback((to: SavedBlueprint, sent: DesignDraft) => {
    setEdit((now) => (now.draft === sent ? startEdit(to) : { ...to, draft: followSaved(now.draft, sent) }))
    setFlaws([])
  }, [])
  const { blueprint: before, draft, etag } = edit
  return { before, draft, etag, isChanged, adoptSaved, update, updateFields, flaws, setFlaws, reset }
}
