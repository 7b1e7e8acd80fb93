import { Button, FileButton } from '@mantine/core'
import { useHotkeys } from '@mantine/hooks'
import { IconPlus, IconUpload } from '@tabler/icons-react'
import { useMutation } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useRef } from 'react'
import { api, fetchData } from '../api/client'
import { queryClient } from '../api/queries'
import type { Component } from '../api/schema'
import type { Column } from '../ui/data-table'
import { useListRows } from '../ui/list-rows'
import { ListTable } from '../ui/list-table'
import { ProblemMessage } from '../ui/problem-message'
import { RelativeTime } from '../ui/relative-time'
import { Screen } from '../ui/screen'
import { ImportResults } from './import-results'

const columns: Column<Component>[] = [
  { key: 'identifier', label: 'Identifier', width: 200, render: ({ identifier }) => identifier },
  { key: 'componentName', label: 'Name', width: 160, render: ({ componentName }) => componentName },
  { key: 'description', label: 'Description', width: 300, render: ({ description }) => description },
  {
    ...{ key: 'requiredProps', label: 'Required props', width: 200 },
    render: ({ requiredProps }) =>
      requiredProps.map((prop) => (typeof prop === 'string' ? prop : prop.prop)).join(', '),
  },
  { key: 'updated', label: 'Changed', width: 140, render: ({ updated }) => <RelativeTime time={updated} /> },
]

/** Sends files of code. Each creates or changes the component of its name. */
async function importFiles(files: File[]) {
  const components = await Promise.all(
    files.map(async (file) => ({ identifier: file.name.replace(/\.[jt]sx?$/, ''), content: await file.text() })),
  )
  const results = await fetchData(api.POST('/api/components/bulk', { body: { components } }))
  await queryClient.invalidateQueries({ queryKey: ['components'] })
  return results
}

/** All components, which pages load from the server. */
export function Components() {
  const navigate = useNavigate()
  const list = useListRows<Component>(['components', 'list'], (query) =>
    api.GET('/api/components', { params: { query } }),
  )
  const importing = useMutation({ mutationFn: importFiles })
  const resetFiles = useRef<() => void>(null)
  const startImport = (files: File[]) => {
    // Otherwise, the browser would say nothing when the same files are chosen again.
    resetFiles.current?.()
    if (files.length) importing.mutate(files)
  }
  const openNew = () => navigate({ to: '/content/components/new' })
  useHotkeys([['n', () => void openNew()]])
  return (
    <Screen
      title="Components"
      request={{ method: 'GET', path: '/api/components' }}
      actions={
        <>
          <FileButton resetRef={resetFiles} multiple accept=".tsx,.ts,.jsx,.js" onChange={startImport}>
            {(props) => (
              <Button {...props} variant="default" leftSection={<IconUpload size={14} />} loading={importing.isPending}>
                Import files
              </Button>
            )}
          </FileButton>
          <Button leftSection={<IconPlus size={14} />} onClick={openNew}>
            New component
          </Button>
        </>
      }
      toolbar={
        <>
          {importing.error && <ProblemMessage error={importing.error} />}
          {importing.data && <ImportResults {...importing.data} onClose={importing.reset} />}
        </>
      }
    >
      <ListTable
        label="Components"
        list={list}
        columns={columns}
        rowKey={({ _id }) => _id}
        onOpen={({ _id }) => navigate({ to: '/content/components/$id', params: { id: _id } })}
        empty={{
          text: 'There are no components yet. A component is code that pages load from here.',
          action: { label: 'Create a component', onClick: openNew },
        }}
      />
    </Screen>
  )
}
