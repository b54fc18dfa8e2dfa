import { execFileSync } from 'node:child_process';
import {
  type AnyDesc,
  createFileRegistry,
  type DescFile,
  type DescService,
  fromBinary,
} from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';

/** The API as described by its proto files, with their comments, which the generated code lacks. */
export interface DescribedApi {
  /** In the order of the names of their files. */
  readonly services: readonly DescService[];
  /** The comment before a declaration as Markdown; empty without one. */
  comment(desc: AnyDesc): string;
}

/** Builds the protos under `root` with buf, which must be on PATH. */
export function readApi(root: string): DescribedApi {
  const bytes = execFileSync(
    'buf',
    ['build', '--path', 'proto/queuedcrawler', '--as-file-descriptor-set', '-o', '-'],
    { cwd: root, maxBuffer: 64 * 1024 * 1024 },
  );
  const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, bytes));
  const ours = [...registry.files]
    .filter((file) => file.proto.package === 'queuedcrawler.v1')
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  const comments = new Map(ours.map((file) => [file.name, readComments(file)]));
  return {
    services: ours.flatMap((file) => file.services),
    comment: (desc) => {
      const file = desc.kind === 'file' ? desc : containingFile(desc);
      return comments.get(file.name)?.get(sourcePath(desc).join('.')) ?? '';
    },
  };
}

function readComments(file: DescFile): Map<string, string> {
  const locations = file.proto.sourceCodeInfo?.location ?? [];
  return new Map(
    locations.map(({ path, leadingComments }) => [path.join('.'), toMarkdown(leadingComments)]),
  );
}

/** Joins the lines of each paragraph; empty lines separate paragraphs. */
function toMarkdown(comment: string): string {
  return comment
    .split(/\n\s*\n/)
    .map((paragraph) => paragraph.trim().replace(/\s*\n\s*/g, ' '))
    .join('\n\n');
}

function containingFile(desc: Exclude<AnyDesc, DescFile>): DescFile {
  if ('file' in desc) return desc.file;
  return containingFile(desc.parent);
}

/**
 * The path of a declaration in SourceCodeInfo: alternately a field number of descriptor.proto and
 * an index.
 */
function sourcePath(desc: AnyDesc): number[] {
  switch (desc.kind) {
    case 'message':
      return desc.parent === undefined
        ? [4, desc.file.proto.messageType.indexOf(desc.proto)]
        : [...sourcePath(desc.parent), 3, desc.parent.proto.nestedType.indexOf(desc.proto)];
    case 'enum':
      return desc.parent === undefined
        ? [5, desc.file.proto.enumType.indexOf(desc.proto)]
        : [...sourcePath(desc.parent), 4, desc.parent.proto.enumType.indexOf(desc.proto)];
    case 'service':
      return [6, desc.file.proto.service.indexOf(desc.proto)];
    case 'field':
      return [...sourcePath(desc.parent), 2, desc.parent.proto.field.indexOf(desc.proto)];
    case 'enum_value':
      return [...sourcePath(desc.parent), 2, desc.parent.proto.value.indexOf(desc.proto)];
    case 'rpc':
      return [...sourcePath(desc.parent), 2, desc.parent.proto.method.indexOf(desc.proto)];
    default:
      return [];
  }
}
