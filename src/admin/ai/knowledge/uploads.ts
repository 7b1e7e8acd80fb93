import { useRef, useState } from 'react'
import { api, fetchData } from '../../api/client'
import { newId } from '../../api/new-id'
import type { Entity } from '../../api/schema'
import { type KnowledgeStore, refreshKnowledge } from './knowledge-queries'

const ENTITIES_PER_REQUEST = 500

/** A file on its way into a store. */
export type Upload = { id: string; name: string; state: 'waiting' | 'running' | 'complete' | 'failed'; error?: unknown }

/** What is stored: its content is read when its turn comes. */
export type UploadSource = { name: string; read(): Promise<string | object> }

/** Returns a file of the computer. What is not text is refused, because nothing could be found in it. */
export const toUploadSource = (file: File): UploadSource => ({
  name: file.name,
  read: async () => {
    const text = await file.text()
    if (text.includes('\0')) throw new Error('This is not a file of text. Save it as text, Markdown or JSON.')
    return text
  },
})

/** Returns an entity without what the server keeps about it. */
const withoutSystemFields = ({ metadata: _, _id, created, updated, user, workspace, ...entity }: Entity) => entity

/** Returns all entities of a blueprint as a file of JSON. */
export const toEntitySource = (key: string): UploadSource => ({
  name: `${key}.json`,
  read: async () => {
    const all: Entity[] = []
    for (;;) {
      const params = { path: { key }, query: { $limit: ENTITIES_PER_REQUEST, $skip: all.length } as object }
      const page = (await fetchData(api.GET('/api/blueprints/{key}/entities', { params }))) as Entity[]
      all.push(...page)
      if (page.length < ENTITIES_PER_REQUEST) return all.map(withoutSystemFields)
    }
  },
})

/** Uploads files one after the other. A file that fails stays in the list with its error. */
export function useUploads({ source, _id }: KnowledgeStore) {
  const [uploads, setUploads] = useState<Upload[]>([])
  const queue = useRef<Promise<unknown>>(Promise.resolve())
  const change = (id: string, part: Partial<Upload>) =>
    setUploads((all) => all.map((upload) => (upload.id === id ? { ...upload, ...part } : upload)))
  const run = async (id: string, { name, read }: UploadSource) => {
    change(id, { state: 'running' })
    try {
      const body = { vectorStoreId: _id, fileName: name, content: (await read()) as string }
      const params = { path: { sourceId: source } }
      await fetchData(api.POST('/api/ai/sources/{sourceId}/storage/upload', { params, body }))
      change(id, { state: 'complete' })
      await refreshKnowledge()
    } catch (error) {
      change(id, { state: 'failed', error })
    }
  }
  return {
    uploads,
    add: (sources: UploadSource[]) => {
      const added = sources.map((one) => ({ source: one, id: newId() }))
      setUploads((all) => [
        ...all.filter(({ state }) => state !== 'complete'),
        ...added.map(({ id, source: { name } }): Upload => ({ id, name, state: 'waiting' })),
      ])
      for (const one of added) queue.current = queue.current.then(() => run(one.id, one.source))
    },
  }
}
