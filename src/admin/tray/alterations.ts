import { useQuery } from '@tanstack/react-query'
import { blueprintsQuery } from '../api/queries'
import type { Blueprint } from '../api/schema'
import type { Work } from './work'

const POLL_INTERVAL_MS = 1_000

const isRunning = ({ alteration }: Blueprint) => !!alteration && alteration.state !== 'failed'

/** The changes of blueprints that the server is applying to their entities, whoever made them. */
export function useAlterations(): Work[] {
  const { data = [] } = useQuery({
    ...blueprintsQuery,
    refetchInterval: ({ state }) => (state.data?.some(isRunning) ? POLL_INTERVAL_MS : false),
  })
  return data
    .filter(isRunning)
    .map(({ key, name, alteration }) => ({
      ...{ id: `alteration ${key}`, unit: 'rows', state: 'running', path: `/data/${key}` },
      label: alteration?.state === 'cleaning' ? `Clean-up of ${name}` : `Change of ${name}`,
      done: alteration?.done ?? 0,
      total: alteration?.total,
      startedAt: Date.parse(alteration?.since ?? ''),
    }))
}
