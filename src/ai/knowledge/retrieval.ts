import type { OpenCtx } from '../../accounts/guard'
import type { AiTarget } from '../../plugins/integrations/targets/ai'
import type { Tx } from '../../storage/port'

/** Where something that a model was told stands. */
export type Citation = { fileId: string; fileName: string | null; chunk: number }

export type Question = {
  integration: { _id: string; target: AiTarget }
  /** In which thread it is asked, by its id. */
  thread?: string
  question: string
}

/** What is known of a question, within what its caller may know: as text for a model, and where it stands. */
export async function retrieved(_ctx: OpenCtx, _asked: Question): Promise<{ text: string; citations: Citation[] }> {
  return { text: '', citations: [] }
}

/** Removes what only a thread knows, with the thread. */
export async function forgetThread(_tx: Tx, _thread: string): Promise<void> {}
