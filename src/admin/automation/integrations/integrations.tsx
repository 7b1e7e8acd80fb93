import { Button, Group, Select } from '@mantine/core'
import { useHotkeys } from '@mantine/hooks'
import { IconPlus } from '@tabler/icons-react'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { api } from '../../api/client'
import type { Integration } from '../../api/schema'
import type { Column } from '../../ui/data-table'
import { useListRows } from '../../ui/list-rows'
import { ListTable } from '../../ui/list-table'
import { RelativeTime } from '../../ui/relative-time'
import { Screen } from '../../ui/screen'
import { ActiveSwitch } from './active-switch'
import { IntegrationSentence } from './integration-sentence'
import { targets } from './targets'
import { triggers } from './triggers'

type Search = { sort?: string; 'trigger.kind'?: string; 'target.kind'?: string }

const columns: Column<Integration>[] = [
  {
    key: 'active',
    label: 'On',
    width: 64,
    isSortable: true,
    render: (integration) => (
      // biome-ignore lint/a11y/noStaticElementInteractions: it only keeps a click from opening the row
      <span onClick={(event) => event.stopPropagation()} onKeyDown={(event) => event.stopPropagation()}>
        <ActiveSwitch integration={integration} />
      </span>
    ),
  },
  { key: 'name', label: 'Name', width: 220, isSortable: true, render: ({ name }) => name },
  {
    key: 'sentence',
    label: 'What it does',
    width: 560,
    render: (integration) => <IntegrationSentence integration={integration} />,
  },
  {
    key: 'updated',
    label: 'Updated',
    width: 140,
    isSortable: true,
    render: ({ updated }) => <RelativeTime time={updated} />,
  },
]

const toChoices = (kinds: Record<string, { label: string }>) =>
  Object.entries(kinds).map(([value, { label }]) => ({ value, label }))

/** All integrations as sentences. */
export function Integrations() {
  const search = useSearch({ strict: false }) as Search
  const navigate = useNavigate()
  const query = { sort: '-created', ...search }
  const list = useListRows(['integrations', 'list', query], (request) =>
    api.GET('/api/integrations', { params: { query: { ...request, ...query } } }),
  )
  const changeSearch = (part: Search) => navigate({ to: '.', search: { ...search, ...part } as never, replace: true })
  const openNew = () => navigate({ to: '/automation/integrations/new' })
  useHotkeys([['n', openNew]])
  const isFiltered = !!(search['trigger.kind'] || search['target.kind'])
  return (
    <Screen
      title="Integrations"
      request={{ method: 'GET', path: '/api/integrations', query }}
      actions={
        <Button leftSection={<IconPlus size={14} />} onClick={openNew}>
          New integration
        </Button>
      }
      toolbar={
        <Group gap="xs">
          <Select
            size="xs"
            aria-label="When"
            placeholder="When anything happens"
            clearable
            data={toChoices(triggers)}
            value={search['trigger.kind'] ?? null}
            onChange={(kind) => changeSearch({ 'trigger.kind': kind ?? undefined })}
          />
          <Select
            size="xs"
            aria-label="Then"
            placeholder="do anything"
            clearable
            data={toChoices(targets)}
            value={search['target.kind'] ?? null}
            onChange={(kind) => changeSearch({ 'target.kind': kind ?? undefined })}
          />
        </Group>
      }
    >
      <ListTable
        label="Integrations"
        list={list}
        columns={columns}
        rowKey={({ _id }) => _id}
        sort={query.sort}
        onSort={(sort) => changeSearch({ sort })}
        onOpen={({ _id }) => navigate({ to: '/automation/integrations/$id', params: { id: _id } })}
        empty={
          isFiltered
            ? {
                text: 'No integration matches.',
                action: { label: 'Show all', onClick: () => navigate({ to: '.', search: {} as never }) },
              }
            : {
                text: 'There are no integrations yet. When something happens, an integration does something.',
                action: { label: 'Create an integration', onClick: openNew },
              }
        }
      />
    </Screen>
  )
}
