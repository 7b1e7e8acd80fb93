import { ActionIcon, Menu } from '@mantine/core'
import { IconBraces, IconCopy, IconDots, IconLink, IconTrash } from '@tabler/icons-react'
import { useNavigate } from '@tanstack/react-router'
import { queryClient } from '../api/queries'
import type { Blueprint } from '../api/schema'
import { confirmAction } from '../ui/confirmation'
import { copyText } from '../ui/copy-text'
import { showNotice, showProblem } from '../ui/notices'
import { refreshLists } from './entity-cache'
import { toEntityLabel } from './entity-label'
import { entityQuery, type LoadedEntity } from './entity-queries'
import { deleteEntity } from './entity-writes'
import { COPY_PREFIX } from './new-entity-panel'

type EntityMenuProps = { blueprint: Blueprint; loaded: LoadedEntity; onDeleted: () => Promise<void> }

/** What can be done with an entity beside changing it. */
export function EntityMenu({ blueprint: { key }, loaded: { entity, etag }, onDeleted }: EntityMenuProps) {
  const navigate = useNavigate()
  const { identifier } = entity
  const copy = (text: string, notice: string) =>
    copyText(text)
      .then(() => showNotice(notice))
      .catch(showProblem)
  const address = `${location.origin}/admin/data/${encodeURIComponent(key)}/${encodeURIComponent(identifier)}`
  const duplicate = () =>
    navigate({
      to: '/data/$blueprint/all/new',
      params: { blueprint: key },
      search: (search: unknown) => search as never,
      hash: `${COPY_PREFIX}${identifier}`,
    })
  const remove = async () => {
    const label = toEntityLabel(entity)
    const isConfirmed = await confirmAction({
      title: `Delete ${label}?`,
      text: 'It cannot be brought back.',
      action: 'Delete',
    })
    if (!isConfirmed) return
    try {
      await deleteEntity(key, identifier, etag)
      // Nothing may ask for it any more before the lists are fetched again.
      await onDeleted()
      queryClient.removeQueries({ queryKey: entityQuery(key, identifier).queryKey })
      showNotice(`Deleted ${label}.`)
      await refreshLists(key)
    } catch (error) {
      showProblem(error)
    }
  }
  return (
    <Menu position="bottom-end" width={180}>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" aria-label="More">
          <IconDots size={16} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item leftSection={<IconCopy size={16} />} onClick={duplicate}>
          Duplicate
        </Menu.Item>
        <Menu.Item leftSection={<IconLink size={16} />} onClick={() => copy(address, 'Copied the link.')}>
          Copy link
        </Menu.Item>
        <Menu.Item
          leftSection={<IconBraces size={16} />}
          onClick={() => copy(JSON.stringify(entity, null, 2), 'Copied the JSON.')}
        >
          Copy JSON
        </Menu.Item>
        <Menu.Divider />
        <Menu.Item color="red" leftSection={<IconTrash size={16} />} onClick={remove}>
          Delete
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  )
}
