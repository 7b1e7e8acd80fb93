import { ActionIcon, Anchor, Input, TextInput } from '@mantine/core'
import { IconPaperclip, IconX } from '@tabler/icons-react'
import { type KeyboardEvent, useState } from 'react'
import { parseFileUrl } from '../api/files'
import { TEXT_OPERATORS } from '../data/operators'
import { FilePreview } from '../ui/file-preview'
import { ChoiceInput } from './choice-input'
import type { CellProps, FieldKind, InputProps } from './field-kind'
import classes from './file.module.css'
import { FileSource } from './file-source'
import { TextListInput } from './list-input'
import { TextCell } from './text-cell'

/** The name of a file as a link to it, or the address of one elsewhere. */
function FileCell(props: CellProps) {
  const address = String(props.value)
  const file = parseFileUrl(address)
  if (!file && !/^https?:\/\//i.test(address)) return <TextCell {...props} />
  return (
    <Anchor href={address} target="_blank" rel="noreferrer" size="sm" onClick={(event) => event.stopPropagation()}>
      {(file?.name || address.replace(/^https?:\/\//i, '')).slice(0, 200)}
    </Anchor>
  )
}

type FileRowProps = { value: string; name: string; onRemove: () => void }

/** One value: a small picture, its name, and a button that removes it from the field. */
function FileRow({ value, name, onRemove }: FileRowProps) {
  const file = parseFileUrl(value)
  const shown = file?.name || value
  return (
    <div className={classes.file}>
      {file && <FilePreview url={value} name={file.name} size={40} />}
      <Anchor className={classes.name} href={value} target="_blank" rel="noreferrer" size="sm" title={shown}>
        {shown}
      </Anchor>
      <ActionIcon variant="subtle" color="gray" aria-label={`Remove ${shown} from ${name}`} onClick={onRemove}>
        <IconX size={14} />
      </ActionIcon>
    </div>
  )
}

/** Takes a file that is dropped or chosen, or the address of one elsewhere. */
function FileInput(props: InputProps) {
  const { field, value, onChange, onBlur, error, label, description, required, autoFocus } = props
  const name = props['aria-label'] ?? label ?? field.key
  if (field.enum) return <ChoiceInput {...props} />
  return (
    <Input.Wrapper {...{ label, description, required, error }} labelElement="div">
      <FileSource field={field} name={name} multiple={false} onUploaded={([url]) => onChange(url)}>
        {(chooser) =>
          typeof value === 'string' && parseFileUrl(value) ? (
            <FileRow value={value} name={name} onRemove={() => onChange(undefined)} />
          ) : (
            <TextInput
              aria-label={name}
              placeholder="Drop or choose a file, or enter an address"
              value={typeof value === 'string' ? value : ''}
              rightSection={chooser}
              error={!!error}
              autoFocus={autoFocus}
              onBlur={onBlur}
              onChange={(event) => onChange(event.currentTarget.value || undefined)}
            />
          )
        }
      </FileSource>
    </Input.Wrapper>
  )
}

/** Takes several files. */
function FileListInput(props: InputProps) {
  const { field, value, onChange, onBlur, error, label, description, required, autoFocus } = props
  const [address, setAddress] = useState('')
  const name = props['aria-label'] ?? label ?? field.key
  const list = Array.isArray(value) ? value.map(String) : []
  const change = (next: string[]) => onChange(next.length ? next : undefined)
  const addAddress = () => {
    if (address) change([...list, address])
    setAddress('')
  }
  const addByEnter = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' || !address) return
    event.preventDefault()
    addAddress()
  }
  if (field.enum) return <TextListInput {...props} />
  return (
    <Input.Wrapper {...{ label, description, required, error }} labelElement="div">
      <FileSource field={field} name={name} multiple onUploaded={(urls) => change([...list, ...urls])}>
        {(chooser) => (
          <>
            {list.map((one, index) => (
              <FileRow
                key={`${one} ${index}`}
                value={one}
                name={name}
                onRemove={() => change(list.filter((_, n) => n !== index))}
              />
            ))}
            <TextInput
              aria-label={`Add to ${name}`}
              placeholder="Drop or choose files, or enter an address"
              value={address}
              rightSection={chooser}
              error={!!error}
              autoFocus={autoFocus}
              onKeyDown={addByEnter}
              onBlur={() => {
                addAddress()
                onBlur?.()
              }}
              onChange={(event) => setAddress(event.currentTarget.value)}
            />
          </>
        )}
      </FileSource>
    </Input.Wrapper>
  )
}

export const file: FieldKind = {
  label: 'File',
  icon: IconPaperclip,
  operators: TEXT_OPERATORS,
  width: 200,
  Cell: FileCell,
  Input: FileInput,
  ListInput: FileListInput,
}
