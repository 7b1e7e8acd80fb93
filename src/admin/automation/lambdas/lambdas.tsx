import { Button } from '@mantine/core'
import { useHotkeys } from '@mantine/hooks'
import { IconPlus } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { api } from '../../api/client'
import type { Lambda, LambdaRunSummary } from '../../api/schema'
import type { Column } from '../../ui/data-table'
import { useListRows } from '../../ui/list-rows'
import { ListTable } from '../../ui/list-table'
import { RelativeTime } from '../../ui/relative-time'
import { Screen } from '../../ui/screen'
import { StateTag } from '../../ui/state-tag'
import { runSummariesQuery } from './lambda-queries'

/** How the last run of a lambda ended. */
function LambdaState({ summary }: { summary?: LambdaRunSummary }) {
  if (!summary) return <StateTag label="Never run" />
  if (summary.lastFailure === summary.lastRun) return <StateTag label="Failed" tone="bad" />
  return <StateTag label="Succeeded" tone="good" />
}

const toColumns = (summaries?: ReadonlyMap<string, LambdaRunSummary>): Column<Lambda>[] => [
  { key: 'name', label: 'Name', width: 260, isSortable: true, render: ({ name }) => name },
  {
    key: 'state',
    label: 'Last run',
    width: 110,
    render: ({ _id }) => summaries && <LambdaState summary={summaries.get(_id)} />,
  },
  {
    key: 'lastRun',
    label: 'When',
    width: 140,
    render: ({ _id }) => summaries?.has(_id) && <RelativeTime time={summaries.get(_id)!.lastRun} />,
  },
  { key: 'runs', label: 'Runs', width: 80, align: 'right', render: ({ _id }) => summaries?.get(_id)?.runs ?? 0 },
  {
    key: 'failures',
    label: 'Failures',
    width: 80,
    align: 'right',
    render: ({ _id }) => summaries?.get(_id)?.failures ?? 0,
  },
  { key: 'version', label: 'Version', width: 80, align: 'right', render: ({ version }) => version },
  {
    key: 'updated',
    label: 'Updated',
    width: 140,
    isSortable: true,
    render: ({ updated }) => <RelativeTime time={updated} />,
  },
  { key: 'description', label: 'Description', width: 320, render: ({ description }) => description },
]

/** All lambdas, with how their runs went. */
export function Lambdas() {
  const { sort = 'name' } = useSearch({ strict: false }) as { sort?: string }
  const navigate = useNavigate()
  const summaries = useQuery(runSummariesQuery)
  const list = useListRows(['lambdas', 'list', sort], (request) =>
    api.GET('/api/lambdas', { params: { query: { ...request, sort } } }),
  )
  const openNew = () => navigate({ to: '/automation/lambdas/new' })
  useHotkeys([['n', openNew]])
  return (
    <Screen
      title="Lambdas"
      request={{ method: 'GET', path: '/api/lambdas', query: { sort } }}
      actions={
        <Button leftSection={<IconPlus size={14} />} onClick={openNew}>
          New lambda
        </Button>
      }
    >
      <ListTable
        label="Lambdas"
        list={list}
        columns={toColumns(summaries.data)}
        rowKey={({ _id }) => _id}
        sort={sort}
        onSort={(next) => navigate({ to: '.', search: { sort: next } as never, replace: true })}
        onOpen={({ _id }) => navigate({ to: '/automation/lambdas/$id', params: { id: _id } })}
        empty={{
          text: 'There are no lambdas yet. A lambda is a function of yours that runs on this server.',
          action: { label: 'Write a lambda', onClick: openNew },
        }}
      />
    </Screen>
  )
}
