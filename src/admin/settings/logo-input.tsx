import { Button, FileButton, Group, Input, Text, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useRef } from 'react'
import { isShownPicture } from '../branding/tenant-brand'
import type { InputProps } from '../fields/field-kind'
import classes from './logo-input.module.css'
import { toLogoPicture } from './logo-picture'

const ACCEPTED = 'image/png,image/jpeg,image/webp,image/svg+xml,image/gif,image/avif'

/** An input for the logo: a picture of this computer, or an address. */
export function LogoInput({ value, onChange, label, error }: InputProps) {
  const logo = typeof value === 'string' ? value : ''
  const isEmbedded = logo.startsWith('data:')
  const resetFile = useRef<() => void>(null)
  const reading = useMutation({ mutationFn: toLogoPicture, onSuccess: onChange })
  const read = (file: File | null) => {
    // Otherwise, the browser would say nothing when the same file is chosen again.
    resetFile.current?.()
    if (file) reading.mutate(file)
  }
  return (
    <Input.Wrapper
      label={label}
      labelElement="div"
      description="Beside the name, and as the icon of the tab. It is scaled down to the height of 96 px."
      error={error ?? reading.error?.message}
    >
      <Group gap="sm" mt={4} wrap="nowrap">
        {isShownPicture(logo) && <img className={classes.picture} src={logo} alt="The logo" />}
        <FileButton resetRef={resetFile} accept={ACCEPTED} onChange={read}>
          {(props) => (
            <Button {...props} variant="default" loading={reading.isPending}>
              {logo ? 'Replace' : 'Upload a picture'}
            </Button>
          )}
        </FileButton>
        {logo && (
          <Button variant="subtle" color="gray" onClick={() => onChange(undefined)}>
            Remove
          </Button>
        )}
      </Group>
      {!isEmbedded && (
        <TextInput
          mt={8}
          aria-label="Address of the logo"
          placeholder="or its address, such as https://www.example.com/logo.svg"
          value={logo}
          onChange={(event) => onChange(event.currentTarget.value || undefined)}
        />
      )}
      {logo && !isShownPicture(logo) && (
        <Text size="xs" c="dimmed" mt={4} role="status">
          Your apps read this address. This page shows no pictures from elsewhere: upload one to see it here.
        </Text>
      )}
    </Input.Wrapper>
  )
}
