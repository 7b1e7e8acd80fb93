import { Button, FileButton, Progress, Select, Text } from '@mantine/core'
import { IconUpload } from '@tabler/icons-react'
import { Outlet, useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { type DragEvent, useRef, useState } from 'react'
import { api } from '../api/client'
import { type StoredFile, uploadFile } from '../api/files'
import type { Column } from '../ui/data-table'
import { formatBytes } from '../ui/format-bytes'
import { useListRows } from '../ui/list-rows'
import { ListTable } from '../ui/list-table'
import { showProblem } from '../ui/notices'
import { RelativeTime } from '../ui/relative-time'
import { Screen } from '../ui/screen'
import { refetchFiles } from './file-queries'

const TYPES = [
  { value: 'image/*', label: 'Pictures' },
  { value: 'video/*', label: 'Videos' },
  { value: 'audio/*', label: 'Audio' },
  { value: 'text/*', label: 'Texts' },
  { value: 'application/pdf', label: 'PDF' },
]

const columns: Column<StoredFile>[] = [
  { key: 'name', label: 'Name', width: 320, render: ({ name }) => name },
  { key: 'type', label: 'Type', width: 180, render: ({ type }) => type },
  { key: 'size', label: 'Size', width: 100, align: 'right', render: ({ size }) => formatBytes(size) },
  { key: 'created', label: 'Uploaded', width: 140, render: ({ created }) => <RelativeTime time={created} /> },
]

type Upload = { name: string; part: number }

/** Uploads files one after the other. They stay although no entity names them. */
function useUploads() {
  const [upload, setUpload] = useState<Upload>()
  const start = async (files: File[]) => {
    for (const file of files)
      await uploadFile(file, (part) => setUpload({ name: file.name, part }), { keep: true }).catch(showProblem)
    setUpload(undefined)
    await refetchFiles()
  }
  return { upload, start }
}

/** All files, or those of the user, with a button and a place to upload more. */
export function Files() {
  const navigate = useNavigate()
  const { id: openId } = useParams({ strict: false })
  const { type }: { type?: string } = useSearch({ strict: false })
  const filter: { type?: string } = type ? { type } : {}
  const list = useListRows<StoredFile>(['files', 'list', filter], (page) =>
    api.GET('/api/files', { params: { query: { ...page, ...filter } } }),
  )
  const { upload, start } = useUploads()
  const resetFiles = useRef<() => void>(null)
  const startUpload = (files: File[]) => {
    // Otherwise, the browser would say nothing when the same files are chosen again.
    resetFiles.current?.()
    void start(files)
  }
  const drop = (event: DragEvent) => {
    event.preventDefault()
    startUpload([...event.dataTransfer.files])
  }
  const filterBy = (next: string | null) =>
    navigate({ to: '/content/files', search: { type: next ?? '' } as never, replace: true })
  return (
    <Screen
      title="Files"
      request={{ method: 'GET', path: '/api/files', query: { ...filter } }}
      actions={
        <FileButton resetRef={resetFiles} multiple onChange={startUpload} inputProps={{ 'aria-label': 'Files' }}>
          {(props) => (
            <Button {...props} leftSection={<IconUpload size={14} />} loading={!!upload}>
              Upload files
            </Button>
          )}
        </FileButton>
      }
      toolbar={
        <>
          <Select
            size="xs"
            aria-label="Type"
            placeholder="All types"
            clearable
            data={TYPES}
            value={type ?? null}
            onChange={filterBy}
          />
          {upload && (
            <>
              <Text size="xs">{upload.name}</Text>
              <Progress value={upload.part * 100} w={160} aria-label={`Upload of ${upload.name}`} />
            </>
          )}
        </>
      }
    >
      <section
        aria-label="Files"
        style={{ display: 'contents' }}
        onDragOver={(event) => event.preventDefault()}
        onDrop={drop}
      >
        <ListTable
          label="Files"
          list={list}
          columns={columns}
          rowKey={({ _id }) => _id}
          activeKey={openId}
          onOpen={({ _id }) => navigate({ to: '/content/files/$id', params: { id: _id }, search: filter as never })}
          empty={
            type
              ? { text: 'No file is of this type.', action: { label: 'Show all files', onClick: () => filterBy(null) } }
              : { text: 'There are no files yet. Drop some here, or upload them by the button above.' }
          }
        />
      </section>
      <Outlet key={openId} />
    </Screen>
  )
}
