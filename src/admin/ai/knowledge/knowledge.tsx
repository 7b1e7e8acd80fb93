import { Button } from '@mantine/core'
import { useHotkeys } from '@mantine/hooks'
import { IconPlus } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { Outlet, useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { useEffect } from 'react'
import { type Column, DataTable } from '../../ui/data-table'
import { EmptyState } from '../../ui/empty-state'
import { showProblem } from '../../ui/notices'
import { ProblemMessage } from '../../ui/problem-message'
import { RelativeTime } from '../../ui/relative-time'
import { Screen } from '../../ui/screen'
import { ECHO_SOURCE_ID } from '../ai-queries'
import classes from './knowledge.module.css'
import { findStoreOfFile, type KnowledgeStore, storesQuery } from './knowledge-queries'
import { useStoreNames } from './store-names'

/** A citation names an agent and a file. */
type KnowledgeSearch = { agent?: string; file?: string }

const toColumns = ({ nameAgent, nameSubject }: ReturnType<typeof useStoreNames>): Column<KnowledgeStore>[] => [
  { key: 'agent', label: 'Agent', width: 180, render: ({ integration }) => nameAgent(integration) },
  { key: 'scope', label: 'For', width: 180, render: nameSubject },
  { key: 'files', label: 'Files', width: 80, align: 'right', render: ({ files }) => files.toLocaleString() },
  { key: 'chunks', label: 'Parts', width: 80, align: 'right', render: ({ chunks }) => chunks.toLocaleString() },
  {
    ...{ key: 'search', label: 'Found by', width: 240 },
    render: ({ embeddingModel }) => (embeddingModel ? `words and meaning (${embeddingModel})` : 'words'),
  },
  {
    ...{ key: 'expires', label: 'Expires', width: 120 },
    render: ({ expires }) => (expires ? <RelativeTime time={expires} /> : 'never'),
  },
]

/** Opens the store of a file that a citation names. */
function useCitedFile({ agent, file }: KnowledgeSearch, isPanelOpen: boolean) {
  const navigate = useNavigate()
  useEffect(() => {
    if (!agent || !file || isPanelOpen) return
    let isObsolete = false
    findStoreOfFile(agent, file).then((store) => {
      if (!store || isObsolete) return
      const params = { source: store.source, store: store._id }
      void navigate({ to: '/ai/knowledge/$source/$store', params, search: { file } as never, replace: true })
    }, showProblem)
    return () => {
      isObsolete = true
    }
  }, [agent, file, isPanelOpen, navigate])
}

/** The files that agents answer from, by the agent and by whom they are for. */
export function Knowledge() {
  const navigate = useNavigate()
  const { store: openId } = useParams({ strict: false })
  useCitedFile(useSearch({ strict: false }), !!openId)
  const { data: stores, error } = useQuery(storesQuery)
  const names = useStoreNames()
  const openNew = () => navigate({ to: '/ai/knowledge/new' })
  useHotkeys([['n', () => void openNew()]])
  return (
    <Screen
      title="Knowledge"
      request={{ method: 'GET', path: `/api/ai/sources/${stores?.[0]?.source ?? ECHO_SOURCE_ID}/storage` }}
      actions={
        <Button leftSection={<IconPlus size={14} />} onClick={openNew}>
          Add knowledge
        </Button>
      }
    >
      <div className={classes.list}>
        {error && <ProblemMessage error={error} />}
        {stores?.length === 0 && (
          <EmptyState
            text="No agent has files yet. Give one your manuals, and it answers from them."
            action={{ label: 'Add the first', onClick: openNew }}
          />
        )}
        {!!stores?.length && (
          <DataTable
            label="Knowledge"
            columns={toColumns(names)}
            count={stores.length}
            rowAt={(index) => stores[index]}
            rowKey={({ _id }) => _id}
            activeKey={openId}
            onOpen={({ source, _id }) =>
              navigate({ to: '/ai/knowledge/$source/$store', params: { source, store: _id } })
            }
          />
        )}
      </div>
      <Outlet key={openId} />
    </Screen>
  )
}
