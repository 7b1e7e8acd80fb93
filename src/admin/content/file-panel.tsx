import { Button, Group } from '@mantine/core'
import { IconDownload, IconLink, IconTrash } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { fileQuery, type StoredFile } from '../api/files'
import { UserLabel } from '../data/system-fields'
import { copyText } from '../ui/copy-text'
import { Details } from '../ui/details'
import { FilePreview } from '../ui/file-preview'
import { formatBytes } from '../ui/format-bytes'
import { showNotice, showProblem } from '../ui/notices'
import { ProblemMessage } from '../ui/problem-message'
import { RelativeTime } from '../ui/relative-time'
import { SidePanel } from '../ui/side-panel'
import { deleteFile } from './file-queries'

/** One file beside the list: its preview, its properties, its link, and the button that deletes it. */
export function FilePanel() {
  const navigate = useNavigate()
  const { id = '' } = useParams({ strict: false })
  const search = useSearch({ strict: false })
  const { data: file, error } = useQuery(fileQuery(id))
  const close = () => navigate({ to: '/content/files', search: search as never })
  return (
    <SidePanel
      title={file?.name ?? 'File'}
      onClose={close}
      footer={file && <FileActions file={file} onDeleted={close} />}
    >
      {error && <ProblemMessage error={error} />}
      {file && (
        <>
          <Group justify="center" py="md">
            <FilePreview url={file.url} name={file.name} type={file.type} bytes={file.size} size={240} />
          </Group>
          <Details
            items={[
              ['Type', file.type],
              ['Size', formatBytes(file.size)],
              ['Owner', <UserLabel key="owner" id={file.owner} />],
              ['Uploaded', <RelativeTime key="created" time={file.created} />],
              ['SHA-256', file.sha256],
            ]}
          />
        </>
      )}
    </SidePanel>
  )
}

function FileActions({ file, onDeleted }: { file: StoredFile; onDeleted: () => unknown }) {
  const copyLink = () =>
    copyText(location.origin + file.url)
      .then(() => showNotice('The link is copied. It opens for those who may read the file.'))
      .catch(showProblem)
  const remove = () =>
    deleteFile(file)
      .then((isDeleted) => isDeleted && onDeleted())
      .catch(showProblem)
  return (
    <>
      <Button variant="default" leftSection={<IconLink size={14} />} onClick={copyLink}>
        Copy link
      </Button>
      <Button
        component="a"
        variant="default"
        href={`${file.url}?download`}
        download={file.name}
        leftSection={<IconDownload size={14} />}
      >
        Download
      </Button>
      <Button variant="subtle" color="red" ml="auto" leftSection={<IconTrash size={14} />} onClick={remove}>
        Delete
      </Button>
    </>
  )
}
