import { Button, Select } from '@mantine/core'
import { useHotkeys } from '@mantine/hooks'
import { IconPlus } from '@tabler/icons-react'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { api } from '../api/client'
import type { Block } from '../api/schema'
import type { Column } from '../ui/data-table'
import { useListRows } from '../ui/list-rows'
import { ListTable } from '../ui/list-table'
import { RelativeTime } from '../ui/relative-time'
import { Screen } from '../ui/screen'
import { BLOCK_KINDS } from './block-kinds'

type BlockSearch = { contentType?: 'content' | 'html' }

const columns: Column<Block>[] = [
  { key: 'name', label: 'Name', width: 240, render: ({ name }) => name },
  {
    ...{ key: 'contentType', label: 'Kind', width: 90 },
    render: ({ contentType }) => BLOCK_KINDS.find(({ value }) => value === contentType)?.label,
  },
  { key: 'description', label: 'Description', width: 320, render: ({ description }) => description },
  { key: 'updated', label: 'Changed', width: 140, render: ({ updated }) => <RelativeTime time={updated} /> },
]

/** All blocks of text and HTML. */
export function Blocks() {
  const navigate = useNavigate()
  const { contentType }: BlockSearch = useSearch({ strict: false })
  const filter: BlockSearch = contentType ? { contentType } : {}
  const list = useListRows<Block>(['blocks', 'list', filter], (page) =>
    api.GET('/api/blocks', { params: { query: { ...page, ...filter } } }),
  )
  const openNew = () => navigate({ to: '/content/blocks/new' })
  const filterBy = (kind: string) => navigate({ to: '.', search: { contentType: kind } as never, replace: true })
  useHotkeys([['n', () => void openNew()]])
  return (
    <Screen
      title="Blocks"
      request={{ method: 'GET', path: '/api/blocks', query: { ...filter } }}
      actions={
        <Button leftSection={<IconPlus size={14} />} onClick={openNew}>
          New block
        </Button>
      }
      toolbar={
        <Select
          size="xs"
          aria-label="Kind"
          placeholder="All kinds"
          clearable
          data={BLOCK_KINDS}
          value={contentType ?? null}
          onChange={(kind) => filterBy(kind ?? '')}
        />
      }
    >
      <ListTable
        label="Blocks"
        list={list}
        columns={columns}
        rowKey={({ _id }) => _id}
        onOpen={({ _id }) => navigate({ to: '/content/blocks/$id', params: { id: _id } })}
        empty={
          contentType
            ? { text: 'No block is of this kind.', action: { label: 'Show all blocks', onClick: () => filterBy('') } }
            : {
                text: 'There are no blocks yet. A block is a piece of text or HTML that pages show.',
                action: { label: 'Create a block', onClick: openNew },
              }
        }
      />
    </Screen>
  )
}
