import { Type } from '@sinclair/typebox'

/** Returns the shape of a setting that is the address of a store that speaks S3, or empty. */
export const storeSetting = (description: string) =>
  Type.String({
    default: '',
    pattern: '^(s3://[^/\\s]+(/\\S*)?)?$',
    expected: 'an address such as s3://bucket/prefix',
    description,
  })
