import { Button, Checkbox, Group, Modal, Radio, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import type { Blueprint } from '../api/schema'
import { entityCountQuery, type ListSearch } from '../data/entity-queries'
import { readFilters } from '../data/filters'
import { showProblem } from '../ui/notices'
import { startExport } from './entity-export'
import { EXPORT_FORMATS, type ExportFormat } from './export-format'
import classes from './transfer.module.css'

type ExportDialogProps = { blueprint: Blueprint; search: ListSearch; onClose: () => void }

const isAbort = (error: unknown) => error instanceof DOMException && error.name === 'AbortError'

/** Asks in which format and with which fields the entities of a list are saved. */
export function ExportDialog({ blueprint, search, onClose }: ExportDialogProps) {
  const keys = blueprint.fields.map(({ key }) => key)
  const [format, setFormat] = useState<ExportFormat>('csv')
  const [fields, setFields] = useState<string[]>(keys)
  const { data: count = 0 } = useQuery(entityCountQuery(blueprint.key, search))
  const isFiltered = readFilters(search).length > 0 || !!search.$q
  const isWhole = fields.length === keys.length
  const submit = (event: FormEvent) => {
    event.preventDefault()
    startExport({ blueprint, format, filters: search, fields: isWhole ? [] : fields, count }).catch(
      (error) => !isAbort(error) && showProblem(error),
    )
    onClose()
  }
  return (
    <Modal opened title={`Export ${blueprint.name.toLowerCase()}`} onClose={onClose}>
      <form onSubmit={submit}>
        <Stack>
          <Text size="sm" c="dimmed">
            {count.toLocaleString()} {count === 1 ? 'entity' : 'entities'}
            {isFiltered ? ' that the list shows' : ''}, oldest first, as it is now.
          </Text>
          <Radio.Group label="Format" value={format} onChange={(value) => setFormat(value as ExportFormat)}>
            <Stack gap="xs" mt={4}>
              {EXPORT_FORMATS.map(({ value, label, description }) => (
                <Radio key={value} value={value} label={label} description={description} />
              ))}
            </Stack>
          </Radio.Group>
          <Checkbox.Group label="Fields" value={fields} onChange={setFields}>
            <Checkbox
              mt={4}
              label="All"
              checked={isWhole}
              indeterminate={!isWhole && fields.length > 0}
              onChange={() => setFields(isWhole ? [] : keys)}
            />
            <div className={classes.fields}>
              {blueprint.fields.map(({ key, title }) => (
                <Checkbox key={key} value={key} label={title || key} />
              ))}
            </div>
          </Checkbox.Group>
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" disabled={!fields.length}>
              Export
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  )
}
