@echo off
rem Sets this machine up from the bundle in this folder, without any network.
rem
rem   start.bat                          asks once, installs and verifies
rem   start.bat --yes --target C:\torch  asks nothing, as software distribution needs it
rem   start.bat detect --json            any other command of the assistant
rem
rem Exit codes: 0 done, 1 failed, 2 wrong usage, 3 the bundle has nothing for this machine. All that is said also goes
rem into a log: SETUP_ASSISTANT_LOG, by default start.log in %LOCALAPPDATA%\pytorch-setup-assistant.
setlocal EnableExtensions DisableDelayedExpansion
set "bundle=%~dp0"
if "%bundle:~-1%"=="\" set "bundle=%bundle:~0,-1%"
set "home=%LOCALAPPDATA%\pytorch-setup-assistant\bundle"
if not defined SETUP_ASSISTANT_LOG set "SETUP_ASSISTANT_LOG=%LOCALAPPDATA%\pytorch-setup-assistant\start.log"

rem Not from the variable: an emulated shell on an ARM computer is told AMD64 there.
set "arch=%PROCESSOR_ARCHITECTURE%"
set "key=HKLM\SYSTEM\CurrentControlSet\Control\Session Manager\Environment"
for /f "tokens=3" %%a in ('reg query "%key%" /v PROCESSOR_ARCHITECTURE 2^>nul') do set "arch=%%a"
set "platform=windows-x86_64"
if /i "%arch%"=="ARM64" set "platform=windows-arm64"
if not exist "%bundle%\uv\%platform%\uv.exe" set "says=machine" & set "code=3" & goto fail

if not exist "%home%\" mkdir "%home%" 2>nul
if not exist "%home%\" set "says=folder" & set "code=1" & goto fail
if exist "%home%\said" del "%home%\said"
set "uv="%bundle%\uv\%platform%\uv.exe" --no-config"

rem uv takes a Python that it needs from here, but not where it is told to stay offline.
if not exist "%bundle%\python\%platform%\" set "uv=%uv% --offline" & goto look
set "slashed=%bundle:\=/%"
set "UV_PYTHON_INSTALL_MIRROR=file:///%slashed%/python/%platform%"
if "%slashed:~0,2%"=="//" set "UV_PYTHON_INSTALL_MIRROR=file:%slashed%/python/%platform%"

:look
rem Lists have names as windows-x86_64-3.12-0123456789ab: an environment of that name holds just its packages.
set "lists=dir /b "%bundle%\assistant\%platform%-*.txt" 2^>nul"
for /f "delims=" %%f in ('%lists%') do call :find "%%~nf" & if not errorlevel 1 goto run
set "says=python"
for /f "delims=" %%f in ('%lists%') do call :make "%%~nf" & if not errorlevel 1 goto run
set "code=1"
goto fail

:find
set "own=%home%\%~1"
if exist "%own%\ready" exit /b 0
exit /b 1

:make
if "%says%"=="failed" exit /b 1
set "own=%home%\%~1"
set "name=%~1"
call set "rest=%%name:%platform%-=%%"
for /f "delims=-" %%v in ("%rest%") do set "version=%%v"
set "part=%home%\part.%RANDOM%"
%uv% venv --quiet --no-project --relocatable --clear --python %version% "%part%" >"%home%\said" 2>&1
if errorlevel 1 exit /b 1
%uv% pip install --quiet --python "%part%\Scripts\python.exe" --no-index --find-links "%bundle%\wheels" --no-deps --require-hashes --requirements "%bundle%\assistant\%~1.txt" >"%home%\said" 2>&1
if errorlevel 1 set "says=failed" & rmdir /s /q "%part%" & exit /b 1
type nul >"%part%\ready"
if exist "%own%\" rmdir /s /q "%own%"
move "%part%" "%own%" >nul
if errorlevel 1 set "says=folder" & exit /b 1
rem What an earlier bundle brought, or a start that was killed has left.
for /f "delims=" %%d in ('dir /b /ad "%home%"') do if /i not "%home%\%%d"=="%own%" rmdir /s /q "%home%\%%d" 2>nul
exit /b 0

:run
rem The assistant shows its commands as they can be typed here.
set "SETUP_ASSISTANT_STARTED_AS="%bundle%\start.bat""
set "word=%~1"
if not defined word goto install
if "%word:~0,1%"=="-" goto install
"%own%\Scripts\python.exe" -P -m torch_setup_assistant %*
exit /b %ERRORLEVEL%

:install
rem What the bundle holds, and nothing from anywhere else.
for %%v in (UV_INDEX UV_DEFAULT_INDEX UV_INDEX_URL UV_EXTRA_INDEX_URL UV_FIND_LINKS PIP_INDEX_URL PIP_EXTRA_INDEX_URL PIP_FIND_LINKS) do set "%%v="
set "UV_NO_CONFIG=1"
set "PIP_CONFIG_FILE=nul"
"%own%\Scripts\python.exe" -P -m torch_setup_assistant bundle install "%bundle%" %*
set "code=%ERRORLEVEL%"
goto end

:fail
rem A sentence in every language, written by whoever made the bundle, in UTF-8.
for /f "tokens=2 delims=:." %%p in ('chcp') do set "page=%%p"
chcp 65001 >nul 2>&1
if exist "%home%\said" type "%home%\said" >&2
type "%bundle%\assistant\says\%says%.txt" >&2
if exist "%home%\said" type "%home%\said" >>"%SETUP_ASSISTANT_LOG%"
if exist "%home%\" type "%bundle%\assistant\says\%says%.txt" >>"%SETUP_ASSISTANT_LOG%"
chcp %page% >nul 2>&1

:end
rem Whoever has clicked on this file shall read how it went.
if "%~1"=="" echo %CMDCMDLINE% | find /i "%~nx0" >nul && pause
exit /b %code%
